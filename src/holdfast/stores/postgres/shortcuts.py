"""Which jobs are done in one trip to the server when all is as hoped?

Nearly every claim is the first of its key, nearly every outcome is that of a running attempt: one statement
checks that and writes. Where it is not so the statement writes nothing, and the job itself decides.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.model.stage import PolicyVersion
from holdfast.model.vocabulary import State
from holdfast.records.chain import Chain, Record
from holdfast.stores.spending import Outcome
from holdfast.stores.sql.claim import Claim, Won, claim
from holdfast.stores.sql.outcome import End, Told, finish, note_outcome

MISSED: Any = object()
"""The answer of a shortcut that wrote nothing."""

Way = tuple[str, tuple[object, ...], Record, Any]
"""A statement that says whether it wrote, its values, the record it writes, and what the job answers then."""


def _called(name: str, arguments: int) -> str:
    return f"SELECT {name}({', '.join(f'${n}' for n in range(1, arguments + 1))})"


NOTE, INTENT, CLAIM, FINISH = (
    _called("note", 10),
    _called("intent", 13),
    _called("claim", 29),
    _called("finish", 20),
)


def note_way(
    chain: Chain, durable: bool, tenant: str, kind: str, at: float, told: Told, budget: Outcome | None = None
) -> Way | None:
    if budget is not None or told.alarms or not _has_begun(chain):
        return None
    record = chain.append(tenant, told.call_id, kind, at, told.body)
    return NOTE, (tenant, durable, *record[1:]), record, None


def claim_way(chain: Chain, durable: bool, wish: Claim) -> Way | None:
    """Only where nothing but the policies was staged: budgets, rates and approvals take the long way."""
    judged = [stage for _, stage in wish.staged if isinstance(stage, PolicyVersion)]
    if len(judged) != len(wish.staged) or len(judged) > 1 or not _has_begun(chain):
        return None
    obeys = (list(wish.halt_names), bool(judged), judged[0].promoted if judged else None)
    record = chain.append(wish.tenant, wish.call_id, "intent", wish.now, wish.intent)
    if wish.row is None:
        return INTENT, (wish.tenant, durable, *obeys, *record[1:]), record, None
    _, writer, seq, _, kind, _, body, prev, hashed = record
    values = (wish.tenant, *obeys, *wish.row[1:], writer, seq, kind, body, prev, hashed)
    return CLAIM, values, record, Won(1, wish.call_id, wish.now)


def finish_way(chain: Chain, durable: bool, end: End, told: Told) -> Way | None:
    """Only where nothing is given back and nothing was reserved."""
    plain = end.state in (State.COMMITTED, State.FAILED_FINAL) and end.budget is None and not told.alarms
    if not plain or not _has_begun(chain):
        return None
    tenant = end.ref.tenant
    record = chain.append(tenant, told.call_id, "outcome", end.at.wall, told.body)
    state, sealed, note, wall, at, boot_id, boot, _, principal, tool, key, epoch, nonce = end.parameters()
    _, writer, seq, call_id, kind, _, body, prev, hashed = record
    how = (state, sealed, note, wall, at, boot_id, boot)
    which = (principal, tool, key, epoch, nonce)
    return (
        FINISH,
        (tenant, *how, *which, writer, seq, call_id, kind, body, prev, hashed),
        record,
        (True, False),
    )


def _has_begun(chain: Chain) -> bool:
    """The first record of a chain also tells the sequencer of it."""
    return chain.mark()[0] > 0


SHORTCUTS: dict[Callable[..., Awaitable[Any]], Callable[..., Way | None]] = {
    note_outcome: note_way,
    claim: claim_way,
    finish: finish_way,
}
