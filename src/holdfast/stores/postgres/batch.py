"""Which jobs are done in one trip to the server when all is as hoped, and which of them together?

Nearly every claim is the first of its key, nearly every outcome is that of a running attempt: one statement
checks that and writes, for as many of one tenant as are waiting. Where it is not so for one of them the
statement writes nothing: then fewer are tried at once, and the job itself decides in the end.
"""

from collections.abc import Awaitable, Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from holdfast.model.operation import OperationRef
from holdfast.model.stage import PolicyVersion
from holdfast.model.vocabulary import State
from holdfast.records.chain import Chain, Record
from holdfast.stores.spending import Outcome
from holdfast.stores.sql.claim import Claim, Won, claim
from holdfast.stores.sql.outcome import End, Told, finish, note_outcome

MOST = 64
"""Jobs in one transaction: what they hold, others may wait for."""

_CLAIMED, _ENDED, _RECORDED = 19, 12, 5
"""Columns of each kind of row."""
_ARGUMENTS = 4 + _CLAIMED + _ENDED + 3 + _RECORDED
STATEMENT = f"SELECT batch({', '.join(f'${n}' for n in range(1, _ARGUMENTS + 1))})"

_KEY = itemgetter(0, 1, 2)
_FINAL = (State.COMMITTED, State.FAILED_FINAL)


class Part(NamedTuple):
    """What one plain job wants written."""

    ref: OperationRef | None  # the operation that it touches
    begins: tuple[tuple[str, ...], tuple[str | None, ...]] | None  # what may halt it, and who judged it
    claimed: tuple[object, ...] | None
    ended: tuple[object, ...] | None
    record: tuple[str, str, float, str]  # of which call, of what kind, when, and its body
    answer: Any


def _note(tenant: str, kind: str, at: float, told: Told, budget: Outcome | None = None) -> Part | None:
    if budget is not None or told.alarms or told.gained:
        return None
    return Part(None, None, None, None, (told.call_id, kind, at, told.body), None)


def _claim(wish: Claim) -> Part | None:
    """Only where nothing but the policies was staged: budgets, rates and approvals take the long way."""
    judged = tuple([stage.promoted for _, stage in wish.staged if isinstance(stage, PolicyVersion)])
    if len(judged) != len(wish.staged):
        return None
    begins, record = (wish.halt_names, judged), (wish.call_id, "intent", wish.now, wish.intent)
    if wish.row is None:
        return Part(None, begins, None, None, record, None)
    return Part(wish.ref, begins, wish.row[1:], None, record, Won(1, wish.call_id, wish.now))


def _finish(end: End, told: Told) -> Part | None:
    """Only where nothing is given back and nothing was reserved."""
    if end.state not in _FINAL or end.budget is not None or told.alarms or told.gained:
        return None
    if end.locked or told.sequels:
        return None
    how = end.parameters()
    ended = how[:7] + how[8:]  # all but the tenant
    return Part(end.ref, None, None, ended, (told.call_id, "outcome", end.at.wall, told.body), (True, False))


PLAIN: dict[Callable[..., Awaitable[Any]], Callable[..., Part | None]] = {
    note_outcome: _note,
    claim: _claim,
    finish: _finish,
}


def part_of(job: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> Part | None:
    """What a job wants where that is plain; None for every other."""
    plain = PLAIN.get(job)
    return None if plain is None else plain(*arguments)


class Batch(NamedTuple):
    values: tuple[object, ...]
    """Of the statement, which says whether it wrote."""
    last: Record
    """Tells later whether it was committed."""


def bound(chain: Chain, tenant: str, durable: bool, parts: Sequence[Part]) -> Batch:
    """The parts as one statement; their records are appended to the chain."""
    names: set[str] = set()
    judged: set[str | None] = set()
    claimed: list[tuple[object, ...]] = []
    ended: list[tuple[object, ...]] = []
    recorded: list[tuple[object, ...]] = []
    seq, prev = chain.mark()
    begun = False
    for part in parts:
        if part.begins is not None:
            begun = True
            names.update(part.begins[0])
            judged.update(part.begins[1])
        if part.claimed is not None:
            claimed.append(part.claimed)
        elif part.ended is not None:
            ended.append(part.ended)
        last = chain.append(tenant, *part.record)
        recorded.append((*part.record, last.hash))
    # Everybody claims in one order, so that no two wait for each other.
    claimed.sort(key=_KEY)
    return Batch(
        (
            tenant,
            durable,
            list(names) if begun else None,
            list(judged),
            *_columns(claimed, _CLAIMED),
            *_columns(ended, _ENDED),
            chain.writer,
            seq + 1,
            prev,
            *_columns(recorded, _RECORDED),
        ),
        last,
    )


def _columns(rows: list[tuple[object, ...]], count: int) -> Sequence[Sequence[object]]:
    return tuple(zip(*rows, strict=True)) if rows else ((),) * count
