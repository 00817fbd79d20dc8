"""Does a request have exactly the members it may have, each of the right kind?"""

import time
from typing import Any

import pytest

from holdfast.servers.members import CALL, DECISION, SHOWN_FAULTS, SHOWN_NAME, faults
from tests.requirements import requirement

GOOD = {"tool": "notes.add", "arguments": {}}


def paths(body: Any) -> list[str]:
    return [fault.path for fault in faults(body, CALL)]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"arguments": '{"a": 1}'},
        {"key": None, "version": None, "deadline_ms": None},
        {"version": "^1.0.0", "key": "k", "task": "t", "step": "s", "session": "x", "deadline_ms": 1},
        {"if_match": "v", "approval_token": "a", "preview": False},
    ],
)
def test_a_call_with_what_it_may_have_is_fine(more: dict[str, Any]) -> None:
    assert faults({**GOOD, **more}, CALL) == []


@requirement("NAM-3")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("tool", 3),
        ("tool", None),
        ("arguments", None),
        ("arguments", [1]),
        ("arguments", 1),
        ("key", 7),
        ("deadline_ms", "3"),
        ("deadline_ms", 0),
        ("deadline_ms", True),
        ("deadline_ms", 1.5),
        ("preview", "true"),
        ("preview", 1),
    ],
)
def test_nothing_is_coerced(member: str, value: Any) -> None:
    assert paths({**GOOD, member: value}) == [f"/{member}"]


def test_every_fault_is_told_at_once() -> None:
    assert paths({"arguments": 1, "key": 2, "keey": 3}) == ["/tool", "/arguments", "/key", "/keey"]


@pytest.mark.parametrize(
    ("name", "near"), [("argumens", "arguments"), ("KEY", "key"), ("deadline", "deadline_ms")]
)
def test_an_unknown_member_is_told_the_nearest_known_one(name: str, near: str) -> None:
    (fault,) = faults({**GOOD, name: 1}, CALL)
    assert fault.message == f"unknown member '{name}', did you mean '{near}'"


def test_a_fault_shows_the_kind_of_a_value_and_never_the_value() -> None:
    (fault,) = faults({**GOOD, "key": ["hunter2"]}, CALL)
    assert fault.actual == "an array"
    assert "hunter2" not in repr(fault)


@requirement("VAL-4")
def test_a_hostile_body_of_unknown_members_costs_little() -> None:
    body = {f"{'x' * 2000}{number}": 1 for number in range(10_000)}
    before = time.thread_time()
    found = faults(body, CALL)
    assert time.thread_time() - before < 0.25
    assert len(found) == SHOWN_FAULTS
    assert all(len(fault.path) <= SHOWN_NAME + 1 for fault in found)


@pytest.mark.parametrize("body", [None, 1, "x", [], True])
def test_only_an_object_has_members(body: Any) -> None:
    assert paths(body) == [""]


def test_a_word_that_is_not_a_choice_is_told_the_choices() -> None:
    (fault,) = faults({"decision": "maybe"}, DECISION)
    assert fault.expected == "one of 'approve', 'deny'"


@pytest.mark.parametrize("odd", [{}, [], 1])
def test_a_choice_of_another_kind_is_a_fault_and_not_a_crash(odd: Any) -> None:
    assert len(faults({"decision": odd}, DECISION)) == 1
