"""Which jobs need no look at what is there?

Nearly every claim is the first of its key, nearly every outcome is that of a running attempt. Their rows are
put together here and written with those of their neighbours, a statement for each kind. Where one of them
finds something else than it hoped for nothing is kept, and every job is run as what it is.
"""

from collections.abc import Callable
from typing import Any, Final

from holdfast.model.stage import PolicyVersion
from holdfast.model.vocabulary import State
from holdfast.stores.spending import Outcome
from holdfast.stores.sql.claim import Claim, Won, claim
from holdfast.stores.sql.outcome import End, Told, finish, note_outcome
from holdfast.stores.sqlite.spool import Spool
from holdfast.stores.sqlite.transaction import SqliteTransaction

MISSED: Final[Any] = object()
"""The answer of a job that is not plain: nothing of it was put down."""

_FINAL = (State.COMMITTED, State.FAILED_FINAL)
_TAKEN = (True, False)


def _claim(place: SqliteTransaction | Spool, wish: Claim) -> Any:
    """Only where nothing but the policies was staged: budgets, rates and approvals take the long way."""
    promoted, halts = place.standing()
    for _, stage in wish.staged:
        if type(stage) is not PolicyVersion or stage.promoted != promoted:
            return MISSED
    if halts and not halts.keys().isdisjoint(wish.halt_names):
        return MISSED
    _, row, _, _, _, tenant, call_id, _, _, _, now, intent, _, labelled = wish
    if labelled and isinstance(place, Spool):
        return MISSED
    place.record(tenant, call_id, "intent", now, intent)
    if row is None or isinstance(place, Spool):
        return None
    place.claims.append(row)
    return Won(1, call_id, now)


def _finish(transaction: SqliteTransaction, end: End, told: Told) -> Any:
    """Only where nothing is given back and nothing was reserved."""
    if end.state not in _FINAL or end.budget is not None or told.alarms or told.gained:
        return MISSED
    if end.locked or told.sequels:
        return MISSED
    transaction.ends.append(end.parameters())
    transaction.record(end.ref.tenant, told.call_id, "outcome", end.at.wall, told.body)
    return _TAKEN


def _note(
    place: SqliteTransaction | Spool,
    tenant: str,
    kind: str,
    at: float,
    told: Told,
    budget: Outcome | None = None,
) -> Any:
    if budget is not None or told.alarms or told.gained:
        return MISSED
    place.record(tenant, told.call_id, kind, at, told.body)
    return None


def _note_alone(
    spool: Spool, tenant: str, kind: str, at: float, told: Told, budget: Outcome | None = None
) -> Any:
    """A question to people stands in the order of its answers, which are in the database."""
    return MISSED if kind == "hold" else _note(spool, tenant, kind, at, told, budget)


ALONE: dict[Callable[..., Any], Callable[..., Any]] = {claim: _claim, note_outcome: _note_alone}
"""Those that may want nothing but records, and then need no transaction."""
PLAIN: dict[Callable[..., Any], Callable[..., Any]] = {claim: _claim, finish: _finish, note_outcome: _note}
