"""Are bad descriptors told apart from good ones, and is what they promise told from how they look?"""

from typing import Any

import pytest

from holdfast.catalog.imports.descriptor import HINTS, MAX_TOOLS, check, digest
from tests.catalog.imports.descriptors import SERVERS, real, take, tool, versions
from tests.requirements import requirement

DEEP: dict[str, Any] = {}
for _ in range(200):
    DEEP = {"items": DEEP}


@pytest.mark.parametrize("server", SERVERS)
def test_the_public_servers_list_sound_descriptors(server: str) -> None:
    assert [check(each) for each in real(server)] == [[] for _ in real(server)]


@requirement("REG-2")
@pytest.mark.parametrize(
    ("descriptor", "why"),
    [
        ("read_file", "must be an object"),
        (None, "must be an object"),
        ({"inputSchema": {"type": "object"}}, "'name' must be"),
        (tool(name=""), "'name' must be"),
        ({**tool(), "name": 7}, "'name' must be"),
        (tool(inputSchema=None), "'inputSchema' must be an object"),
        (tool(inputSchema="object"), "'inputSchema' must be an object"),
        (tool(inputSchema={"type": "string"}), "must say 'type: object'"),
        (tool(inputSchema={"type": ["string", "null"]}), "must say 'type: object'"),
        (tool(outputSchema=[]), "'outputSchema' must be an object"),
        (tool(description=["a"]), "'description' must be a string"),
        (tool(description="a" * 40_000), "longer than"),
        (tool(annotations="readOnly"), "'annotations' must be an object"),
        (tool(annotations={"readOnlyHint": "yes"}), "'annotations.readOnlyHint' must be true or false"),
        (tool(icons={}), "'icons' must be an array"),
        (tool(_meta=[]), "'_meta' must be an object"),
        (tool(execution=1), "'execution' must be an object"),
        (tool(inputSchema={"type": "object", "x": DEEP}), "deep"),
        (tool(inputSchema={"type": "object", "enum": ["a" * 70_000]}), "longer"),
        (tool(inputSchema={"type": "object", "enum": list(range(30_000))}), "more than"),
        (tool(description="lone \ud800"), "surrogate"),
        (tool(inputSchema={"type": "object", "minimum": float("nan")}), "nan"),
    ],
)
def test_a_bad_descriptor_is_refused_with_its_reason(descriptor: Any, why: str) -> None:
    assert any(why.lower() in reason.lower() for reason in check(descriptor)), check(descriptor)


@requirement("REG-2")
def test_every_fault_of_a_descriptor_is_told_at_once() -> None:
    assert len(check({"name": 1, "inputSchema": 2, "description": 3, "annotations": 4})) == 4


@pytest.mark.parametrize(
    "members",
    [
        {"description": None},
        {"outputSchema": None},
        {"annotations": None},
        {"inputSchema": {}},
        {"inputSchema": {"type": ["object", "null"]}},
        {"something": {"new": True}},
        {"inputSchema": {"type": "object", "maximum": 2**64 - 1}},
    ],
)
def test_what_is_unusual_and_harmless_is_taken(members: dict[str, Any]) -> None:
    assert check(tool(**members)) == []
    assert versions(take(tool(**members))) == ["1.0.0"]


@requirement("REG-2")
def test_bad_descriptors_are_reported_and_skipped_and_the_rest_kept() -> None:
    taken = take(7, tool(), tool("broken", inputSchema=None), {"name": None}, tool("list_files"))
    assert [offer.contract.identity.name for offer in taken.offers] == ["read_file", "list_files"]
    assert len(taken.reports) == 3
    assert "tool 1 of the list is skipped" in taken.reports[0]
    assert "'broken' is skipped: 'inputSchema' must be an object" in taken.reports[1]


@requirement("REG-2")
def test_a_list_without_end_is_cut_and_said() -> None:
    listed = [tool(f"t{index}", inputSchema=None) for index in range(MAX_TOOLS + 5)]
    taken = take(*listed)
    assert f"only the first {MAX_TOOLS}" in taken.reports[0]
    assert len(taken.reports) == MAX_TOOLS + 1


SAME = [
    {"title": "Another title"},
    {"icons": [{"src": "https://example.test/icon.png"}]},
    {"_meta": {"build": 7}},
    {"annotations": {"title": "Read"}},
    {"description": "reads a file -- WHOLE"},
    {"description": "Reads\n\n  a file, (whole)!"},
]


@requirement("REG-8")
@pytest.mark.parametrize("members", SAME)
def test_what_is_cosmetic_does_not_change_the_digest(members: dict[str, Any]) -> None:
    assert digest(tool(**members)) == digest(tool())


OTHER = [
    {"name": "read_files"},
    {"description": "Reads a file, whole, and more"},
    {"description": "Reads a file, who\u200ble."},
    {"description": "Reads a f\u0456le, whole."},
    {"description": "Reads a /file, whole."},
    {"description": "<Reads a file, whole.>"},
    {"description": None},
    {"description": "Reads a file, whole. \u212a"},
    *({"annotations": {hint: value}} for hint in HINTS for value in (True, False)),
    {"annotations": {"unheardOf": 1}},
    {"execution": {"taskSupport": "required"}},
    {"outputSchema": {"type": "object"}},
    {"inputSchema": {"type": "object"}},
    {"something": "new"},
]


@requirement("REG-8")
@pytest.mark.parametrize("members", OTHER)
def test_what_is_a_promise_changes_the_digest(members: dict[str, Any]) -> None:
    assert digest(tool(**members)) != digest(tool())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 7 K", "at 7 \u212a"),
        ("at most 5", "at most -5"),
        ("3.5 s", "3 5 s"),
        ("1:30", "1 30"),
        ("50%", "50"),
        ("a_b", "a b"),
    ],
)
def test_signs_that_mean_something_are_words(one: str, other: str) -> None:
    assert digest(tool(description=one)) != digest(tool(description=other))
