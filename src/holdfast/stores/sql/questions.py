"""How is a question to people written down? The jobs and rows behind `approvals`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from holdfast.model import defaults
from holdfast.model.approval import Answer, Approval, Vote
from holdfast.model.call import Call
from holdfast.model.errors import TooManyAsks
from holdfast.model.operation import OperationRef
from holdfast.model.vocabulary import State
from holdfast.records.body import act_body
from holdfast.stores import question
from holdfast.stores.sql import access
from holdfast.stores.sql.engine import APPROVALS, Row, Transaction

_COLUMNS = (
    "tenant, id, principal, tool, key, round, call_id, fingerprint, contract_digest, need, answer, packet,"
    " created_at, expires_at, used_nonce, task, level, release, tries, release_at, said"
)
ROUND, PACKET = 5, 11

GET = f"SELECT {_COLUMNS} FROM approval WHERE tenant = ? AND id = ?"  # noqa: S608
_GET_ALONE = GET + " /* FOR UPDATE */"
FIND = (
    f"SELECT {_COLUMNS} FROM approval WHERE tenant = ? AND principal = ? AND tool = ? AND key = ?"  # noqa: S608
    " ORDER BY round DESC LIMIT 1"
)
OPEN = (
    f"SELECT {_COLUMNS} FROM approval WHERE tenant = ? AND answer = 'PENDING' AND expires_at > ?"  # noqa: S608
    " ORDER BY created_at, id"
)
_NEWEST = (
    "(SELECT id FROM approval WHERE tenant = ? AND created_at >= ? AND answer <> 'PENDING'"
    " ORDER BY created_at DESC, id DESC LIMIT ?)"
)
ANSWERED = (
    f"SELECT {_COLUMNS} FROM approval WHERE tenant = ? AND id IN {_NEWEST}"  # noqa: S608
    " ORDER BY created_at, id"
)
MARK = (
    "SELECT count(*), max(created_at), sum(level), sum(votes) FROM (SELECT a.created_at, a.level,"
    " (SELECT count(*) FROM vote v WHERE v.tenant = a.tenant AND v.approval_id = a.id) AS votes"
    " FROM approval a WHERE a.tenant = ? AND a.answer = 'PENDING' AND a.expires_at > ?) AS waiting"
)
TALLY = (
    "SELECT answer, count(*) FROM approval WHERE tenant = ? AND principal = ? AND tool = ?"
    " AND created_at >= ? AND answer <> 'PENDING' GROUP BY answer"
)
PAST = f"SELECT {_COLUMNS} FROM approval WHERE answer = 'PENDING' AND expires_at <= ? ORDER BY expires_at"  # noqa: S608
SLOW = (
    f"SELECT {_COLUMNS} FROM approval WHERE answer = 'PENDING' AND expires_at > ? AND level < ?"  # noqa: S608
    " AND created_at + (expires_at - created_at)"
    " * (CAST(? AS DOUBLE PRECISION) + level * CAST(? AS DOUBLE PRECISION)) <= ? ORDER BY expires_at"
)
RELEASABLE = (
    f"SELECT {_COLUMNS} FROM approval a WHERE answer = 'APPROVED' AND release = 'gateway'"  # noqa: S608
    " AND used_nonce IS NULL AND release_at <= ? AND expires_at > ? AND EXISTS (SELECT 1 FROM operation o"
    " WHERE (o.tenant, o.principal, o.tool, o.key) = (a.tenant, a.principal, a.tool, a.key)"
    " AND o.state IN ('held', 'no_effect'))"
)
VOTES = (
    "SELECT person, role, approve, note, at, via FROM vote WHERE tenant = ? AND approval_id = ?"
    " ORDER BY at, person"
)
ANSWERED_VOTES = (
    "SELECT approval_id, person, role, approve, note, at, via FROM vote"  # noqa: S608
    f" WHERE tenant = ? AND approval_id IN {_NEWEST} ORDER BY at, person"
)

_STATE = (
    "SELECT state, fingerprint, contract_digest, call_id FROM operation"
    " WHERE tenant = ? AND principal = ? AND tool = ? AND key = ? /* FOR UPDATE */"
)
_HOLD = """
INSERT INTO operation (tenant, principal, tool, key, call_id, version, contract_digest, fingerprint, state,
  epoch, nonce, owner, key_source, trace_id, created_at, updated_at, boot_id, window_s, payload,
  attendant)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'held', 0, ?9, '', ?10, ?11, ?12, ?12, '', ?13, ?14, ?15)
ON CONFLICT DO NOTHING
"""
_HOLD_AGAIN = """
UPDATE operation SET state = 'held', updated_at = ?, finished_at = NULL, finished_boot_id = NULL,
  forget_boot = NULL
WHERE tenant = ? AND principal = ? AND tool = ? AND key = ? AND state = 'no_effect'
"""
_COUNT = (
    "SELECT count(*) FROM approval"
    " WHERE tenant = ? AND principal = ? AND answer = 'PENDING' AND expires_at > ?"
)
_COUNT_TASK = _COUNT + " AND task = ?"
_INSERT = "INSERT INTO approval VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, 0, ?, 0, 0, '')"
_ESCALATE = "UPDATE approval SET level = ? WHERE tenant = ? AND id = ? AND level < ? AND answer = 'PENDING'"
_RELEASING = (
    "UPDATE approval SET tries = tries + 1, release_at = ? WHERE tenant = ? AND id = ? AND tries = ?"
    " AND answer = 'APPROVED' AND release = 'gateway' AND used_nonce IS NULL"
)
_KEEP_BACK = "UPDATE approval SET release = 'caller', said = ? WHERE tenant = ? AND id = ?"
_VOID = (
    "UPDATE approval SET answer = 'AUTO_DENIED' WHERE tenant = ? AND id = ?"
    " AND answer IN ('PENDING', 'APPROVED')"
)
_VOTE = "INSERT INTO vote VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ANSWER = "UPDATE approval SET answer = ? WHERE tenant = ? AND id = ? AND answer = 'PENDING'"


class Held(NamedTuple):
    """The operation that waits; a read that needs consent has none."""

    ref: OperationRef
    row: tuple[object, ...]


async def ask(
    transaction: Transaction, call: Call, wanted: Approval, packet: bytes, held: Held | None, body: str
) -> tuple[Row, list[Row]]:
    """The question that stands for this call, or `wanted` as a new one."""
    now = wanted.created_at
    call_id = call.id if held is None else await _hold(transaction, call, held, now)
    standing = await transaction.one(FIND, wanted.ref)
    if standing is not None:
        votes = await transaction.all(VOTES, standing[:2])
        if question.still_good(read(standing, votes, {}), call, wanted.need, now):
            return standing, votes
        await transaction.run(_VOID, standing[:2])
    task = question.task_of(call)
    await _refuse_flood(transaction, wanted.ref, task, now)
    row = (
        wanted.ref.tenant,
        wanted.id,
        *wanted.ref[1:],
        1 if standing is None else standing[ROUND] + 1,
        call_id,
        wanted.fingerprint,
        wanted.contract_digest,
        orjson.dumps(wanted.need).decode(),
        wanted.answer.value,
        packet,
        now,
        wanted.expires_at,
    )
    await transaction.run(_INSERT, (*row, task, wanted.release))
    transaction.record(wanted.ref.tenant, call_id, "ask", now, body)
    return (*row, None, task, 0, wanted.release, 0, 0.0, ""), []


async def _hold(transaction: Transaction, call: Call, held: Held, now: float) -> str:
    if await transaction.run(_HOLD, (*held.ref, *held.row)) == 1:
        return call.id
    [found] = await transaction.all(_STATE, held.ref)
    state, fingerprint, contract_digest, call_id = found
    question.refuse_unless_holdable(call, State(state), fingerprint, contract_digest)
    await transaction.run(_HOLD_AGAIN, (now, *held.ref))
    return str(call_id)


async def _refuse_flood(transaction: Transaction, ref: OperationRef, task: str, now: float) -> None:
    principal = (ref.tenant, ref.principal, now)
    [(count,)] = await transaction.all(_COUNT, principal)
    if count >= defaults.OPEN_ASKS:
        raise TooManyAsks(question.FLOOD.format(principal=ref.principal, count=count))
    if task:
        [(count,)] = await transaction.all(_COUNT_TASK, (*principal, task))
        if count >= defaults.OPEN_ASKS_TASK:
            raise TooManyAsks(question.TASK_FLOOD.format(task=task, count=count))


async def decide(
    transaction: Transaction, tenant: str, approval_id: str, vote: Vote, elevates: bool = False
) -> tuple[Row, list[Row]]:
    """With the last yes to an elevation, its grant begins."""
    if elevates:
        await transaction.brake()  # before any row is locked, as claims do
    row = await transaction.one(_GET_ALONE, (tenant, approval_id))
    votes = await transaction.all(VOTES, (tenant, approval_id))
    found = None if row is None else read(row, votes, {})
    approval = question.refuse_unless_votable(found, approval_id, vote.person, vote.at)
    cast = (vote.person, vote.role, int(vote.approve), vote.note, vote.at, vote.via)
    await transaction.run(_VOTE, (tenant, approval_id, *cast))
    answer = question.answer_after(replace(approval, votes=(*approval.votes, vote)))
    await transaction.run(_ANSWER, (answer.value, tenant, approval_id))
    if elevates and answer is Answer.APPROVED:
        await access.begin(transaction, approval, vote.person, vote.at)
    said = question.told_of_vote(approval_id, vote, answer)
    transaction.record(
        tenant, approval.call_id, "vote", vote.at, act_body(vote.at, "vote", vote.person, **said)
    )
    name = (tenant, approval_id)
    transaction.ring(APPROVALS)
    [now] = await transaction.all(GET, name)
    return now, await transaction.all(VOTES, name)


async def expire(transaction: Transaction, tenant: str, approval_id: str, call_id: str, now: float) -> bool:
    if await transaction.run(_ANSWER, (Answer.AUTO_DENIED.value, tenant, approval_id)) == 0:
        return False
    body = act_body(now, "expire", "holdfast", approval_id=approval_id, answer=Answer.AUTO_DENIED)
    transaction.record(tenant, call_id, "vote", now, body)
    transaction.ring(APPROVALS)
    return True


async def escalate(
    transaction: Transaction, tenant: str, approval_id: str, call_id: str, level: int, now: float, body: str
) -> bool:
    if await transaction.run(_ESCALATE, (level, tenant, approval_id, level)) == 0:
        return False
    transaction.record(tenant, call_id, "escalate", now, body)
    return True


async def releasing(
    transaction: Transaction, tenant: str, approval_id: str, tries: int, again_at: float
) -> bool:
    return await transaction.run(_RELEASING, (again_at, tenant, approval_id, tries)) == 1


async def keep_back(transaction: Transaction, tenant: str, approval_id: str, said: str) -> None:
    await transaction.run(_KEEP_BACK, (said, tenant, approval_id))


async def alarm(transaction: Transaction, tenant: str, call_id: str, now: float, body: str) -> None:
    transaction.record(tenant, call_id, "security", now, body)


def read(row: Row, votes: Sequence[Row], packet: Mapping[str, Any]) -> Approval:
    tenant, approval_id, principal, tool, key, _, call_id, fingerprint, contract_digest = row[:9]
    need, answer, _, created_at, expires_at, used_nonce = row[9:15]
    _, level, release, tries, _, said = row[15:]
    return Approval(
        id=approval_id,
        ref=OperationRef(tenant, principal, tool, key),
        call_id=call_id,
        fingerprint=fingerprint,
        contract_digest=contract_digest,
        need=orjson.loads(need),
        answer=Answer(answer),
        votes=votes_of(votes),
        packet=packet,
        created_at=created_at,
        expires_at=expires_at,
        used=used_nonce is not None,
        level=level,
        release=release,
        tries=tries,
        said=said,
    )


def votes_of(rows: Sequence[Row]) -> tuple[Vote, ...]:
    return tuple(
        Vote(person=person, role=role, approve=bool(approve), note=note, at=at, via=via)
        for person, role, approve, note, at, via in rows
    )
