"""Does it not matter where a batch of records ends, or whose writer was sequenced first?"""

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.view import CallRow
from holdfast.stores.projected import Line
from holdfast.stores.projection import Projection, Seen, seen
from tests.requirements import requirement

KINDS = (
    "intent",
    "outcome",
    "late",
    "contradiction",
    "hold",
    "refusal",
    "replay",
    "settle",
    "vote",
    "security",
    "control",
)
STATES = ("held", "claimed", "dispatched", "committed", "no_effect", "unknown", "failed_final", "other")
ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=2)
)


def some(*words: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(words)


BODIES = st.fixed_dictionaries(
    {
        "tool": some("bank.pay@1.0.0", "bank.look@2.0.0", "nope"),
        "caller": some("ana", "holdfast"),
        "agent": some("bot", "reader"),
        "nonce": some("n-1", "n-2", ""),
        "status": some("done", "failed", "unknown", "held", "refused", "preview"),
    },
    optional={
        "error_code": some("TIMEOUT", "CANCELLED") | st.none(),
        "contract_digest": some("d"),
        "mutation_class": some("read_only", "write_reversible"),
        "latency_ms": st.floats(0, 1e6) | ANYTHING,
        "attempts": st.integers(0, 3) | ANYTHING,
        "operation": some("abandon", "count_lost_read", "settle", "cost"),
        "from": some(*STATES),
        "to": some(*STATES) | ANYTHING,
        "state": some(*STATES),
        "answer": some("APPROVED", "DENIED", "AUTO_DENIED", "PENDING"),
        "approval_id": some("apr_1", "apr_2"),
        "task": some("t-1", "t-2"),
        "cost": st.fixed_dictionaries(
            {"currency": some("USD"), "parts": st.dictionaries(some("token", "network"), st.integers(-1, 9))}
        )
        | ANYTHING,
    },
)
RECORDS = st.lists(
    st.tuples(some("default", "acme"), some("call_1", "call_2"), some(*KINDS), st.integers(1, 300), BODIES),
    max_size=12,
)


def read(records: list[tuple[str, str, str, int, dict[str, Any]]]) -> list[Seen]:
    made = [
        seen(leaf, tenant, call_id, kind, float(at), json.dumps(body, separators=(",", ":")))
        for leaf, (tenant, call_id, kind, at, body) in enumerate(records)
    ]
    return [one for one in made if one is not None]


def in_one(records: list[Seen]) -> Projection:
    return Projection().take(records)


@requirement("PPL-2")
@given(RECORDS, st.data())
def test_whatever_the_batches_the_view_is_the_same(
    records: list[tuple[str, str, str, int, dict[str, Any]]], data: st.DataObject
) -> None:
    whole, left = in_one(read(records)), read(records)
    lines: dict[tuple[str, str], Line] = {}
    traffic: Counter[Any] = Counter()
    spent: Counter[Any] = Counter()
    while left:
        size = data.draw(st.integers(1, len(left)))
        batch, left = left[:size], left[size:]
        known = [Line(*lines[name].values()) for name in {one.name for one in batch} if name in lines]
        made = Projection(known).take(batch)
        lines |= made.lines
        traffic.update(made.traffic)
        for key, (calls, cost) in made.spending.items():
            spent[key, "calls"] += calls
            spent[key, "cost"] += cost
    assert {name: line.values() for name, line in lines.items()} == {
        name: line.values() for name, line in whole.lines.items()
    }
    assert traffic == Counter(whole.traffic)
    both = {(key, what): sums[place] for key, sums in whole.spending.items() for place, what in PLACES}
    assert spent == Counter(both)
    assert sum(whole.hours().values()) == sum(whole.days().values()) == sum(whole.traffic.values())


PLACES = ((0, "calls"), (1, "cost"))


def told(kind: str, at: float, **said: Any) -> tuple[str, str, str, float, dict[str, Any]]:
    body = {"tool": "bank.pay@1.0.0", "caller": "ana", "agent": "bot", "nonce": "n-1"}
    return (
        "default",
        "call_1",
        kind,
        at,
        body | {"contract_digest": "d", "mutation_class": "read_only"} | said,
    )


LIVES: tuple[tuple[tuple[Any, ...], ...], ...] = (
    (told("intent", 1), told("outcome", 1, status="done", attempts=1)),
    (told("intent", 1), told("outcome", 2, status="failed"), told("intent", 3, nonce="n-2")),
    (
        told("hold", 1, approval_id="apr_1", status="held"),
        told("vote", 2, answer="DENIED"),
    ),
    (
        told("intent", 1),
        told("outcome", 2, status="unknown"),
        told("settle", 3, **{"from": "unknown", "to": "committed"}),
    ),
    (
        told("hold", 1, approval_id="apr_1", status="held"),
        told("intent", 2, approval_id="apr_1"),
        told("outcome", 3, status="done", approval_id="apr_1"),
    ),
)


@requirement("PPL-2")
@given(st.sampled_from(LIVES).flatmap(lambda life: st.tuples(st.just(life), st.permutations(life))))
def test_records_of_several_writers_may_come_in_any_order(both: tuple[Any, Any]) -> None:
    life, mixed = (in_one(read(list(records))) for records in both)
    [line], [other] = life.lines.values(), mixed.lines.values()

    def shown(row: CallRow) -> CallRow:
        return row._replace(at=0.0)  # the first that came

    assert shown(other.row()) == shown(line.row())
    assert mixed.traffic == life.traffic
