"""A chain that cannot run says so before anything has run, and says all of it."""

from typing import Any

import pytest

from holdfast.model.call import Principal
from holdfast.model.vocabulary import Effect
from tests.chains.tools import CHARGE, FIND, RESERVE, chained, checked, faults
from tests.requirements import requirement


def look(id: str, sku: Any, **said: Any) -> dict[str, Any]:
    return {"id": id, "tool": "shop.find", "with": {"sku": sku}, **said}


@requirement("CHN-1")
def test_a_chain_whose_steps_fit_can_be_run() -> None:
    report = checked(chained(FIND, RESERVE, CHARGE))
    assert report.ok
    assert report.notes == ()
    assert (report.effect, report.scopes) == (Effect.HIGH_RISK_EXTERNAL, ("pay:write",))


@requirement("CHN-1")
def test_every_fault_is_told_at_once_and_each_with_its_place() -> None:
    wrong = {
        "id": "charge",
        "tool": "pay.charge",
        "with": {"order": "=find.price", "cents": "=find.cost", "x": 1},
    }
    assert faults(FIND, wrong, {"id": "tell", "tool": "mail.sent", "with": {}}) == [
        "steps[2].tool: there is no tool 'mail.sent' here; 'holdfast tools' lists them",
        "steps[1].with.order: this value is never what 'pay.charge' takes as 'order'",
        "steps[1].with.cents: there is no 'cost'; there is 'id', 'price'",
        "steps[1].with.x: 'pay.charge' takes no 'x'",
    ]


@requirement("CHN-1")
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("=find.id", None),
        ("=find.price", "is never what"),
        ("=to_string(find.price)", None),
        ("=input.sku", None),
        ("=input.many", "is never what"),
        ("=[find.id][0]", None),
        ("=find.id.length", "has no members"),
        ("=find.[id]", "is never what"),
        ("=find.id || input.sku", None),
        ("=find.id || find.price", None),
        ("=find.(", "cannot be read"),
        (7, "is never what"),
        ("plain", None),
        ("==find.id", None),
    ],
)
def test_a_value_fits_or_is_told_not_to(value: Any, told: str | None) -> None:
    found = faults(FIND, look("again", value))
    assert [fault.startswith("steps[1].with.sku: ") for fault in found] == ([] if told is None else [True])
    assert told is None or told in found[0]


@requirement("CHN-4")
def test_what_is_needed_and_not_given_is_a_fault_and_what_may_be_missing_is_said() -> None:
    assert faults({"id": "find", "tool": "shop.find", "with": {}}) == [
        "steps[0].with: 'shop.find' needs 'sku', which is not given"
    ]
    report = checked(chained({"id": "send", "tool": "mail.send", "with": {"to": "=input.mail"}}))
    assert report.ok
    assert [str(note) for note in report.notes] == [
        "steps[0].with.to: 'to' is needed and may be missing; the step fails then"
    ]


@requirement("CHN-1")
def test_what_nobody_can_know_is_said_and_not_refused() -> None:
    look_up = {"id": "lake", "tool": "lake.look", "with": {"q": "=input.sku"}}
    report = checked(chained(look_up, look("again", "=lake.rows[0].sku")))
    assert report.ok
    assert ["nothing is known of this value" in note.text for note in report.notes] == [True]


@requirement("CHN-1")
def test_a_value_of_which_some_fit_is_said_and_held_to_it_when_it_is_there() -> None:
    report = checked(chained(FIND, look("again", "=find.id || find.price")))
    assert report.ok
    assert ["not every such value is what" in note.text for note in report.notes] == [True]


@requirement("CHN-1")
@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([look("a", "=b.id"), look("b", "=input.sku")], "'b' runs after this"),
        ([look("a", "=b.id"), look("b", "=a.id")], "'a' and 'b' wait for each other"),
        ([look("a", "=a.id")], "'a' and 'a' wait for each other"),
        ([look("a", "=c.id"), look("b", "=a.id"), look("c", "=b.id")], "'a' and 'c' wait for each other"),
        ([look("a", "=nobody.id")], "there is no step 'nobody'; known here are input"),
        ([{"parallel": [look("a", "=input.sku"), look("b", "=a.id")]}], "'a' runs beside this"),
    ],
)
def test_a_step_uses_what_is_over_before_it(steps: list[dict[str, Any]], told: str) -> None:
    [fault] = faults(*steps)
    assert told in fault


@requirement("CHN-3")
def test_after_a_join_every_branch_can_be_used_and_after_a_quorum_it_may_be_missing() -> None:
    both = [look("a", "=input.sku"), look("b", "=input.sku")]
    whole = checked(chained({"parallel": both}, look("c", "=a.id")))
    assert (whole.ok, whole.notes) == (True, ())
    part = checked(chained({"parallel": both, "join": {"quorum": 0.5}}, look("c", "=a.id")))
    assert part.ok
    assert ["may be missing" in note.text for note in part.notes] == [True]


@requirement("CHN-2")
def test_conditions_are_read_before_anything_runs() -> None:
    arms = [{"when": "find.price > limit", "do": look("a", "=find.id")}, {"otherwise": look("b", "=find.id")}]
    [fault] = faults(FIND, {"branch": arms})
    assert fault.startswith("steps[1].branch[0].when: ")
    assert "unknown names ['limit']" in fault
    assert "does not compile" in faults(FIND, look("c", "=find.id", when="find.price >"))[0]


@requirement("CHN-1")
def test_a_chain_is_no_deeper_than_ten_steps_and_a_loop_counts_every_round() -> None:
    assert faults(*(look(f"s{n}", "=input.sku") for n in range(10))) == []
    [deep] = faults(*(look(f"s{n}", "=input.sku") for n in range(11)))
    assert deep == "steps: the longest way through has 11 steps, more than 10"
    [round_and_round] = faults({"repeat": 6, "do": [look("a", "=input.sku"), look("b", "=a.id")]})
    assert "12 steps" in round_and_round


@requirement("CHN-1")
def test_a_deadline_that_cannot_be_kept_is_refused() -> None:
    assert faults(FIND, RESERVE, deadline_ms=200) == []
    assert faults(FIND, RESERVE, deadline_ms=199) == [
        "deadline_ms: the longest way takes about 200 ms, more than 199"
    ]
    beside = {"parallel": [FIND, RESERVE]}
    assert faults(beside, deadline_ms=100) == []
    [much] = faults({**FIND, "share": 0.7}, {**RESERVE, "share": 0.7})
    assert "add up to 1.4" in much


@requirement("CHN-6")
def test_a_step_the_caller_may_not_use_refuses_the_chain() -> None:
    poor = Principal(user="ada", agent="bot", scopes=frozenset({"orders:read"}), trust=50)
    report = checked(chained(FIND, RESERVE, CHARGE), poor)
    assert [str(fault) for fault in report.faults] == [
        "steps[2]: 'ada' may not use 'pay.charge': it needs the scope 'pay:write'"
    ]
    rich = Principal(user="ada", agent="bot", scopes=frozenset({"pay:*"}), trust=50)
    assert checked(chained(FIND, RESERVE, CHARGE), rich).ok


@requirement("SAG-2")
def test_in_a_saga_what_cannot_be_taken_back_comes_last_or_asks_first() -> None:
    tell = {"id": "tell", "tool": "mail.send", "with": {"to": "=input.sku"}}
    undo = {"tool": "pay.refund", "with": {"charge": "=charge.charge"}}
    assert faults(FIND, RESERVE, {**CHARGE, "undo": undo}, tell, saga=True) == []
    [early] = faults(tell, RESERVE, saga=True)
    assert early.startswith("steps[0]: 'mail.send' cannot be taken back, and 'reserve' comes after it")
    asks = checked(
        chained({"id": "file", "tool": "law.file", "with": {"to": "=input.sku"}}, RESERVE, saga=True)
    )
    assert asks.ok
    assert "people are asked before it runs" in asks.notes[0].text
    assert faults(tell, RESERVE) == []


@requirement("SAG-1")
def test_what_takes_a_step_back_is_held_to_the_same_rules() -> None:
    wrong = {**CHARGE, "undo": {"tool": "pay.refund", "with": {"charge": "=find.price"}}}
    assert faults(FIND, RESERVE, wrong, saga=True) == [
        "steps[2].undo.with.charge: this value is never what 'pay.refund' takes as 'charge'"
    ]


@requirement("CHN-5")
def test_the_answer_is_held_to_the_schema_that_the_chain_promises() -> None:
    promised = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    assert faults(FIND, output={"id": "=find.id"}, output_schema=promised) == []
    assert faults(FIND, output={"id": "=find.price"}, output_schema=promised) == [
        "output: this value is never the chain's 'output_schema'"
    ]
