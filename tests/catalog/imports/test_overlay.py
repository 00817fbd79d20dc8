"""Does an overlay state the truth about imported tools, and is what is wrong with it told at once?"""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.imports.imported import accept
from holdfast.catalog.imports.names import local_name
from holdfast.catalog.imports.overlay import KEYWORDS, Overlay
from holdfast.model.errors import ConfigError
from holdfast.model.vocabulary import Effect, Floor, ToolStatus, Undo
from tests.catalog.imports.descriptors import offered, take, tool, versions
from tests.requirements import requirement

WRITE: dict[str, Any] = {
    "effect": "MEDIUM_RISK_WRITE",
    "undo": "semantic",
    "idempotency": "meta",
    "manifest": [["files", "UPDATE", "file"]],
}


def refused(mapping: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        Overlay.parse(mapping, "files.yaml")
    return str(caught.value)


@requirement("CON-8")
def test_a_stated_effect_makes_a_tool_active() -> None:
    [contract] = offered(take(tool(), overlay={"read_file": {"effect": "READ_ONLY"}}))
    assert contract.effect is Effect.READ_ONLY
    assert contract.identity.status is ToolStatus.ACTIVE
    assert contract.security.approval_floor is Floor.NONE
    assert contract.transactional.manifest == ()
    assert contract.transactional.preview is None
    assert contract.security.required_scopes == ("files:read_file",)


@requirement("CON-8")
def test_an_overlay_speaks_the_keywords_of_the_decorator() -> None:
    stated = {
        **WRITE,
        "scopes": ["files:write"],
        "floor": "user",
        "data_class": "confidential",
        "timeout_class": "standard",
        "timeout_ms": 2000,
        "tags": ["files"],
        "errors": [{"match": "ENOENT", "code": "SEMANTIC_INVALIDITY", "effect": "none"}],
        "in_band": "result.error",
        "semantics": [{"holds": "args.path != '/'", "message": "not the root"}],
        "probe": {"read": {"tool": "stat", "arguments": {"path": "=args.path"}}, "committed": "true"},
    }
    taken = take(
        tool("write_file"), tool("stat"), overlay={"write_file": stated, "stat": {"effect": "READ_ONLY"}}
    )
    assert taken.reports == ()
    [contract] = offered(taken, "write_file")
    assert contract.transactional.undo is Undo.SEMANTIC
    assert contract.transactional.probe is not None
    assert contract.transactional.probe.read.tool == "files.stat"  # a short name is of the same upstream
    assert contract.security.required_scopes == ("files:write",)
    assert contract.honours_key
    assert contract.runtime.timeout_s == 2


@requirement("CON-8", "CON-5")
def test_a_schema_written_here_is_closed_and_shown_instead() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "format": "uri"}}}
    stated = {"effect": "READ_ONLY", "input_schema": schema, "description": "Reads a file by its address"}
    taken = take(tool(title="Read"), overlay={"read_file": stated})
    [offer] = taken.offers
    enforced = offer.contract.affordance.input_schema
    assert enforced["additionalProperties"] is False
    assert enforced["properties"]["path"]["format"] == "uri"
    assert offer.native == {
        **tool(title="Read"),
        "description": "Reads a file by its address",
        "inputSchema": enforced,
    }


@requirement("CON-8", "CON-3")
def test_a_classified_tool_that_breaks_the_class_table_is_refused_and_the_rest_kept() -> None:
    taken = take(tool("send"), tool(), overlay={"send": {"effect": "HIGH_RISK_EXTERNAL"}})
    assert versions(taken, "send") == []
    assert versions(taken) == ["1.0.0"]
    [report] = taken.reports
    for missing in ("manifest", "idempotency", "approval_floor", "preview", "postconditions"):
        assert missing in report


@requirement("CON-8")
def test_what_relies_on_a_refused_tool_is_refused_too_and_the_rest_kept() -> None:
    relying = {
        "effect": "READ_ONLY",
        "lookups": {"there": {"tool": "stat", "arguments": {"path": "=args.path"}}},
    }
    overlay = {"read_file": relying, "stat": {"effect": "READ_ONLY", "scopes": ["not a scope"]}}
    taken = take(tool(), tool("stat"), tool("other"), overlay=overlay)
    assert [offer.contract.identity.name for offer in taken.offers] == ["other"]
    assert any(
        "'files.read_file' is refused" in report and "files.stat" in report for report in taken.reports
    )


@requirement("CON-8")
def test_an_overlay_may_rely_on_a_tool_of_another_upstream() -> None:
    [elsewhere] = offered(take(tool("stat"), overlay={"stat": {"effect": "READ_ONLY"}}), "stat")
    looks = {"tool": "disk.stat", "arguments": {"path": "=args.path"}}
    overlay = {"read_file": {"effect": "READ_ONLY", "lookups": {"there": looks}}}
    assert versions(take(tool(), overlay=overlay, known={"disk.stat": elsewhere}.get)) == ["1.0.0"]
    assert versions(take(tool(), overlay=overlay)) == []


@requirement("CON-8")
def test_without_an_effect_a_tool_stays_provisional_whatever_else_is_said() -> None:
    stated = {"timeout_class": "standard", "scopes": ["files:any"], "floor": "two_person"}
    [contract] = offered(take(tool(), overlay={"read_file": stated}))
    assert contract.identity.status is ToolStatus.PROVISIONAL
    assert contract.effect is Effect.HIGH_RISK_EXTERNAL
    assert contract.security.approval_floor is Floor.TWO_PERSON
    assert contract.security.required_scopes == ("files:any",)


@requirement("CON-8")
def test_nothing_makes_an_unclassified_tool_seem_safer() -> None:
    told = refused(
        {
            "version": 1,
            "defaults": {"floor": "user"},
            "tools": {"a": {"floor": "none"}, "b": {"undo": "exact"}, "c": {"status": "active"}},
        }
    )
    for place in ("defaults.floor", "tools.a.floor", "tools.b.undo", "tools.c.status"):
        assert f"'{place}'" in told
    assert "provisional" in refused(
        {"version": 1, "tools": {"a": {"effect": "READ_ONLY", "status": "provisional"}}}
    )


@requirement("CON-8")
def test_every_fault_is_told_at_once_with_its_place_and_the_word_that_was_meant() -> None:
    told = refused(
        {
            "version": 2,
            "tols": {},
            "defaults": {"efect": "READ_ONLY", "effect": "READ_ONLY"},
            "tools": {
                "a": {"efect": "READ_ONLY", "timeout_ms": "3", "floor": "nobody"},
                "b": {"effect": "READ_ONLY", "probe": {"reed": 1}, "hidden": "yes"},
                "c": 7,
                8: {},
            },
        }
    )
    for fault in (
        "overlay 'files.yaml' cannot be used",
        "'version' must be 1",
        "'tols' is not known here; did you mean 'tools'?",
        "'defaults.efect' is not known; did you mean 'effect'?",
        "'defaults.effect' is said of each tool",
        "'tools.a.efect' is not known; did you mean 'effect'?",
        "'tools.a' 'timeout_ms': input should be a valid integer",
        "'tools.a' 'floor': input should be",
        "'tools.b' 'probe.reed' is not known here; did you mean 'read'?",
        "'tools.b.hidden' must be true or false",
        "'tools.c' must be a mapping",
        "'tools.8' is no name",
    ):
        assert fault in told, fault


@pytest.mark.parametrize("mapping", [None, [], "text", 7])
def test_what_is_no_mapping_is_refused(mapping: Any) -> None:
    assert "must be a mapping" in refused(mapping)


def test_python_only_keywords_are_not_for_files() -> None:
    assert not {"checks", "name"} & set(KEYWORDS)
    assert {"effect", "undo", "floor", "scopes", "input_schema", "hidden", "pinned"} <= set(KEYWORDS)


def test_more_exact_entries_win_over_patterns_and_defaults() -> None:
    overlay = Overlay.parse(
        {
            "version": 1,
            "defaults": {"owner": "all", "tags": ["d"]},
            "tools": {
                "read_file": {"owner": "exact"},
                "read_*": {"owner": "pattern", "tags": ["p"]},
                "*": {"timeout_class": "standard"},
            },
        }
    )
    stated = overlay.stated("read_file").values
    assert stated == {"owner": "exact", "tags": ["p"], "timeout_class": "standard"}
    assert overlay.stated("write").values == {"owner": "all", "tags": ["d"], "timeout_class": "standard"}


@pytest.mark.parametrize("key", ["admin.read", local_name("admin.read")])
def test_a_tool_is_meant_by_the_upstreams_name_or_by_ours(key: str) -> None:
    [offer] = take(tool("admin.read"), overlay={key: {"effect": "READ_ONLY"}}).offers
    assert offer.contract.effect is Effect.READ_ONLY


@requirement("CON-8", "REG-8")
def test_a_pattern_holds_for_what_was_there_first_and_for_what_was_accepted() -> None:
    overlay = {"get_*": {"effect": "READ_ONLY"}}
    first = take(tool("get_a"), overlay=overlay)
    assert offered(first, "get_a")[0].effect is Effect.READ_ONLY
    second = take(tool("get_a"), tool("get_b"), overlay=overlay, lock=first.lock)
    assert offered(second, "get_b")[0].effect is Effect.HIGH_RISK_EXTERNAL
    accepted = accept(second.lock, "files", "get_b", "ann", "later")
    third = take(tool("get_a"), tool("get_b"), overlay=overlay, lock=accepted)
    assert offered(third, "get_b")[-1].effect is Effect.READ_ONLY


def test_what_the_overlay_speaks_of_in_vain_is_reported() -> None:
    taken = take(tool(), overlay={"read_fil": {"effect": "READ_ONLY"}, "write_*": {"owner": "x"}})
    assert taken.reports == (
        "'test.yaml' speaks of 'read_fil', which the upstream does not offer; did you mean 'read_file'?",
        "'test.yaml' speaks of 'write_*', which the upstream does not offer",
    )


def test_hidden_and_pinned_tools_are_named_and_still_offered() -> None:
    taken = take(tool("a1"), tool("b1"), tool("c1"), overlay={"a1": {"hidden": True}, "b1": {"pinned": True}})
    assert (taken.hidden, taken.pinned) == (frozenset({"a1"}), frozenset({"b1"}))
    assert len(taken.offers) == 3


TEXT = """
version: 1
tools:
  read_file:
    effect: READ_ONLY
    deprecated_on: 2030-12-31
"""


@requirement("CON-8")
def test_a_file_is_yaml_or_json(tmp_path: Path) -> None:
    (tmp_path / "files.yaml").write_text(TEXT)
    tree = {"version": 1, "tools": {"read_file": {"effect": "READ_ONLY", "deprecated_on": "2030-12-31"}}}
    (tmp_path / "files.json").write_text(json.dumps(tree))
    one, other = Overlay.load(tmp_path / "files.yaml"), Overlay.load(str(tmp_path / "files.json"))
    assert one.tools == other.tools == tree["tools"]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.yaml", "version: [", "not valid YAML at line"),
        ("a.yaml", "version: 1\nversion: 1", "appears twice"),
        ("a.json", "{", "not valid JSON"),
        ("a.json", '{"version": 1, "version": 1}', "appears twice"),
        ("a.yaml", "", "'version' must be 1"),
        ("a.yaml", "- a", "must be a mapping"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=why):
        Overlay.load(tmp_path / name)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the overlay 'none.yaml'"):
        Overlay.load(tmp_path / "none.yaml")


@requirement("CON-8")
def test_what_an_overlay_makes_is_registered_as_it_stands() -> None:
    taken = take(
        tool("write_file"), tool(), overlay={"write_file": WRITE, "read_file": {"effect": "READ_ONLY"}}
    )
    listed = MemoryCatalog().replace("files", taken.offers, taken.statuses)
    assert {listing.status for listing in listed} == {ToolStatus.ACTIVE}
