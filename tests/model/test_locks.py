"""Is exactly what can be told apart locked? EXE-7."""

from typing import Any

import pytest

from holdfast.model.locks import MOST, Resource, locks, unlocked
from tests.catalog.contracts import get_order, low
from tests.requirements import requirement

ORDER = {"type": "string", "x-resource": "orders"}
ENTRY = {"resource": "orders", "operation": "UPDATE"}


def made(*manifest: dict[str, Any], **properties: Any) -> Any:
    face = {"input_schema": {"type": "object", "properties": properties}}
    return low(affordance=face, transactional={"manifest": list(manifest)})


@requirement("EXE-7")
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"order": "o-1"}, [("orders", "o-1")]),
        ({"order": "o-1", "others": ["o-2", "o-1"]}, [("orders", "o-1"), ("orders", "o-2")]),
        ({}, []),
        ({"others": []}, []),
        ({"order": "a/../b"}, [("orders", "")]),
        ({"order": "**"}, [("orders", "%2A%2A")]),
        ({"order": 7}, [("orders", "7")]),
        ({"others": [f"o-{n}" for n in range(MOST)]}, [("orders", f"o-{n}") for n in range(MOST)]),
        ({"others": [f"o-{n}" for n in range(MOST + 1)]}, [("orders", "")]),
    ],
    ids=["one", "several", "left out", "none", "unclear", "no pattern", "a number", "many", "too many"],
)
def test_ids_are_locked_one_by_one(arguments: dict[str, Any], found: list[tuple[str, str]]) -> None:
    other = {"type": "array", "items": {"type": "string"}, "x-resource": "orders"}
    known = locks(made({**ENTRY, "scope": "some"}, order=ORDER, others=other))
    assert known is not None
    assert known.of(arguments) == tuple(sorted(Resource(*one) for one in found))


@requirement("EXE-7")
def test_a_kind_that_is_declared_as_a_whole_is_locked_unless_a_call_names_some_of_it() -> None:
    known = locks(made({**ENTRY, "scope": "*"}, order=ORDER))
    assert known is not None
    assert known.of({}) == (Resource("orders"),)
    assert known.of({"order": "o-1"}) == (Resource("orders", "o-1"),)


@requirement("EXE-7")
def test_who_says_nothing_of_it_locks_nothing() -> None:
    assert locks(made({**ENTRY, "scope": "one"}, order={"type": "string"})) is None
    assert (
        locks(made({**ENTRY, "scope": "one"}, order={"type": "string", "x-resource": "no kind at all"}))
        is None
    )
    assert (
        locks(get_order(affordance={"input_schema": {"type": "object", "properties": {"order": ORDER}}}))
        is None
    )


@requirement("EXE-7")
def test_a_kind_is_the_same_by_mark_and_by_manifest() -> None:
    marked = locks(made({**ENTRY, "scope": "one"}, file={"type": "string", "x-resource": "shop/files"}))
    declared = locks(made({"resource": "shop/files", "operation": "DELETE", "scope": "*"}))
    assert marked is not None
    assert declared is not None
    assert {one.kind for one in (*marked.of({"file": "a"}), *declared.of({}))} == {"shop-files"}
    assert unlocked(made({**ENTRY, "scope": "one"}, file={"type": "string"})) == ("orders",)


@requirement("EXE-7", "CHN-6")
def test_a_chain_locks_nothing_for_its_steps_do() -> None:
    face = {"input_schema": {"type": "object", "properties": {"order": ORDER}}}
    whole = [{**ENTRY, "scope": "*"}]
    assert locks(low(affordance=face, transactional={"manifest": whole, "composed": True})) is None
    assert unlocked(low(transactional={"composed": True})) == ()
