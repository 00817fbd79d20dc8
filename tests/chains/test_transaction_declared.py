"""A transaction is declared in a file or in Python, checked, guessed and drawn."""

from typing import Any

import pytest

from holdfast.chains.algebra import chain, step, transaction
from holdfast.chains.check import Report, check
from holdfast.chains.drawing import mermaid
from holdfast.chains.reading import read
from holdfast.chains.writing import written
from holdfast.gateway.chain_plan import steps_known
from holdfast.gateway.chain_tools import plan_of
from holdfast.model.call import Principal
from holdfast.model.contract import Contract, Session
from holdfast.model.errors import ConfigError
from holdfast.model.vocabulary import Undo
from tests.chains.tools import FIND, LOW, RESERVE, TEXT, TOOLS, chained, contract, things
from tests.requirements import requirement


def part(
    name: str, role: str, *, takes: dict[str, Any] | None = None, session: str = "till", **said: Any
) -> Contract:
    """A tool of the till that works in its sessions."""
    handle = "result.tx" if role == "begin" else "tx"
    gives = things(tx=TEXT) if role == "begin" else things(entry=TEXT)
    made = contract(f"till.{name}", takes or things(tx=TEXT), gives, effect=LOW, undo=Undo.EXACT, **said)
    worked = made.transactional.model_copy(
        update={"session": Session(name=session, role=role, handle=handle)}  # type: ignore[arg-type]
    )
    return made.model_copy(update={"transactional": worked})


TILL = {
    one.tool: one
    for one in (
        part("begin", "begin", takes=things("note", note=TEXT), p99_ms=10, availability=0.9),
        part("add", "step", takes=things(tx=TEXT, name=TEXT), undone_by="till.remove"),
        part("burn", "step", takes=things(tx=TEXT)),
        part("commit", "commit", p99_ms=1000, availability=0.5, scopes=["till:commit"]),
        part("rollback", "rollback"),
        part("other", "step", session="drawer"),
        part("bare", "begin", session="bare", takes=things("note", note=TEXT)),
        part("greedy", "begin", session="greedy", takes=things("note", note=TEXT)),
        part("give", "commit", session="greedy", takes=things(tx=TEXT, reason=TEXT)),
        part("back", "rollback", session="greedy"),
        contract("till.remove", things(name=TEXT), effect=LOW, undo=Undo.EXACT, undone_by="till.add"),
    )
}
BEGIN = {"id": "book", "tool": "till.begin", "with": {"note": "x"}}
ADD = {
    "id": "tea",
    "tool": "till.add",
    "with": {"name": "=input.sku"},
    "undo": {"tool": "till.remove", "with": {"name": "=input.sku"}},
}


def node(*steps: dict[str, Any], begin: dict[str, Any] = BEGIN) -> dict[str, Any]:
    return {"transaction": {"begin": begin, "steps": list(steps or [ADD])}}


def partner(namespace: str, session: str, role: str) -> Contract | None:
    parts = [one for one in TILL.values() if one.transactional.session is not None]
    found = [
        one
        for one in parts
        if one.transactional.session is not None
        and (one.transactional.session.name, one.transactional.session.role) == (session, role)
    ]
    return found[0] if found and namespace == "till" else None


def checked(*steps: dict[str, Any], by: Principal | None = None, **said: Any) -> Report:
    tools = TOOLS | TILL
    return check(chained(*steps, **said), lambda tool, version: tools.get(tool), by, partner=partner)


@requirement("CHN-1", "CHN-5")
def test_the_same_transaction_in_a_file_and_in_python_and_written_down_again() -> None:
    tree = {"chain": "order", "steps": [node({"id": "tea", "tool": "till.add", "with": {"name": "x"}})]}
    made = chain(
        "order", transaction(step("book", "till.begin", note="x"), step("tea", "till.add", name="x"))
    )
    assert written(read(tree)) == written(made)
    assert written(read(written(made))) == written(made)
    assert list(read(tree).body) == list(made.body)
    with pytest.raises(ValueError, match="one step begins a transaction"):
        transaction(step("a", "t.a") >> step("b", "t.b"), step("c", "t.c"))


@requirement("CHN-1", "CHN-5")
@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ({"transaction": []}, "steps[0].transaction: this is a mapping with 'begin: {tool, with}'"),
        ({"transaction": {"steps": [ADD]}}, "steps[0].transaction: this is a mapping with 'begin"),
        ({"transaction": {"begin": BEGIN}}, "steps[0].transaction.steps: write a list with one step"),
        ({"transaction": {"begin": BEGIN, "steps": [ADD], "commit": 1}}, "'commit' is not known here"),
        (node(begin={**BEGIN, "failure": "continue"}), "steps[0].transaction.begin.failure"),
        (node({**ADD, "id": "book"}), "another step is called 'book' already"),
    ],
)
def test_what_is_no_transaction_is_told_where(tree: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        chained(tree)
    assert told in str(refused.value)


@requirement("CHN-1", "CHN-5")
@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([node()], None),
        ([node(FIND, ADD)], None),
        ([node(begin={**BEGIN, "tool": "shop.find", "with": {"sku": "x"}})], "'shop.find' begins no session"),
        ([node(begin={**BEGIN, "tool": "till.gone"})], "there is no tool 'till.gone' here"),
        ([node(begin={**BEGIN, "tool": "till.bare"})], "has the role 'commit' in session 'bare'"),
        (
            [node(begin={**BEGIN, "tool": "till.greedy"})],
            "'till.give' needs 'reason', and a transaction tells",
        ),
        ([node(RESERVE)], "'shop.reserve' writes outside of session 'till'; put it before"),
        ([node({**FIND, "fallbacks": ["shop.reserve"]})], "'shop.reserve' writes outside of session 'till'"),
        (
            [node({"id": "o", "tool": "till.other"})],
            "'till.other' works in another session than 'till.begin'",
        ),
        (
            [node({"id": "c", "tool": "till.commit"})],
            "has the role 'commit', which the transaction takes care",
        ),
        ([node({**ADD, "with": {"name": "x", "tx": "y"}})], "with.tx: the transaction fills this"),
        ([node({**ADD, "with": {}})], "'till.add' needs 'name', which is not given"),
        (
            [node(node({**ADD, "id": "inner"}, begin={**BEGIN, "id": "again"}))],
            "a transaction stands in no other",
        ),
        ([node({"parallel": [[FIND], [ADD]]})], "in a transaction one thing is done after the other"),
        ([{**ADD, "with": {"name": "x", "tx": "y"}}], "'till.add' works in a session; with 'transaction'"),
        ([node({"id": "b", "tool": "till.burn"})], "nothing says how 'till.burn' is taken back"),
    ],
)
def test_a_transaction_is_checked_before_anything_runs(steps: list[dict[str, Any]], told: str | None) -> None:
    found = [str(fault) for fault in checked(*steps, saga=True).faults]
    assert (found == []) if told is None else told in "\n".join(found), found


@requirement("CHN-5")
def test_by_hand_and_without_a_saga_a_session_may_be_worked_in_and_is_told() -> None:
    report = checked(
        {**ADD, "with": {"name": "x", "tx": "y"}}, {"id": "c", "tool": "till.commit", "with": {"tx": "y"}}
    )
    assert report.ok
    assert "all of it is done, or nothing" in str(report.notes[0])


@requirement("CHN-5", "CHN-6")
def test_whoever_runs_it_needs_what_ends_it_too() -> None:
    assert checked(node()).scopes == ("till:commit",)
    assert {"till.commit", "till.rollback"} <= set(checked(node()).contracts)
    bob = Principal(user="bob", agent="bot")
    told = [str(fault) for fault in checked(node(), by=bob).faults]
    assert told == [
        "steps[0].transaction.begin: 'bob' may not use 'till.commit': it needs the scope 'till:commit'"
    ]


@requirement("CHN-1", "CHN-5")
def test_a_transaction_takes_as_long_as_its_steps_and_its_ends() -> None:
    guess = checked(node()).estimate
    assert (guess.latency_ms, guess.steps) == (10 + 100 + 1000, 3)
    assert abs(guess.success - 0.9 * 0.9 * 0.5) < 1e-12


@requirement("CHN-5", "CHN-6")
def test_a_preview_says_what_is_done_together() -> None:
    shown = plan_of(checked(FIND, node()))["steps"]
    assert [(one["name"], one.get("transaction")) for one in shown] == [
        *(("find", None), ("book", None), ("tea", "book"))
    ]


@requirement("CHN-5", "APR-8")
def test_nobody_is_asked_beforehand_about_what_is_done_in_a_session_that_is_not_there() -> None:
    wished = steps_known(chained(FIND, node()), {"sku": "tea"})
    assert [one.tool for one in wished] == ["shop.find", "till.begin"]


@requirement("CHN-5")
def test_a_transaction_is_drawn_with_both_of_its_ends() -> None:
    drawn = mermaid(chained(node(), FIND))
    for line in (
        "  start --> book",
        "  book --> tea",
        "  tea --> steps_0_commit",
        "  steps_0_commit --> find",
    ):
        assert line in drawn.splitlines(), drawn
