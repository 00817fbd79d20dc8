"""What do the records and the ledger say of one call, put together?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from holdfast.gateway.passages import DECIDED, ENDED, RAN, Told, passages
from holdfast.gateway.telling import KINDS, need, sentence, settled_note, why
from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Principal
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import Operation
from holdfast.model.story import Ledger, Line, Moment, Passage, Said, Settled, Story
from holdfast.model.view import RUNNING
from holdfast.model.vocabulary import State

CALLS = ENDED | {"intent"}
"""Records that say whose call it is, and of which tool."""
HIDDEN = ("authorize", Code.PERMISSION_DENIED)
"""Who may not use a tool is not told that there is one."""
_SEALED = ("claim", "decision")


class Whose(NamedTuple):
    user: str
    agent: str
    tool: str

    @property
    def principal(self) -> str:
        return Principal(user=self.user, agent=self.agent).id


class Seen(NamedTuple):
    """What there is to make a story of, as far as its reader may see it."""

    whose: Whose
    told: Sequence[Told]
    operation: Operation | None
    observation: Observation | None
    approval: Approval | None
    audited: bool


def whose(operation: Operation | None, told: Sequence[Told]) -> Whose | None:
    """None where there is no such call."""
    for one in told:
        if one.kind in CALLS and "tool" in one.body:
            body = one.body
            return Whose(str(body["caller"]), str(body["agent"]), str(body["tool"]).partition("@")[0])
    if operation is None:
        return None
    user, _, agent = operation.ref.principal.partition("/")
    return Whose(unquote(user), unquote(agent), operation.ref.tool)


def veiled(told: Sequence[Told]) -> list[Told]:
    """The records for those who may not read the log: without security events, and a tool that is hidden from
    them looks like one that is not there.
    """
    return [_veiled(one) for one in told if one.kind != "security"]


def _veiled(one: Told) -> Told:
    body = one.body
    if (body.get("gate"), body.get("error_code")) != HIDDEN:
        return one
    named = str(body["tool"]).partition("@")[0]
    over = max([0, *(body.get("gates") or ())])
    hidden = {"mutation_class": None, "operation": None, "contract_digest": None}
    said = {"gate": "resolve", "gates": [over], "error_code": Code.TOOL_NOT_FOUND.value, "tool": named}
    return Told(one.entry, {**body, **hidden, **said})


def story(call_id: str, seen: Seen) -> Story:
    told = sorted(seen.told, key=lambda one: (one.at, one.entry.leaf))
    ways = tuple(passages(told, audited=seen.audited))
    operation, observation = seen.operation, seen.observation
    decided = _decided(ways, operation)
    first = _first(told, operation)
    status = _status(decided, operation, observation)
    code = decided.code if decided is not None else ""
    if observation is not None and status != RUNNING:
        code = "" if observation.code is None else observation.code.value
    return Story(
        call_id=call_id,
        at=ways[0].at if ways else first["at"],
        tool=seen.whose.tool,
        version=first["version"],
        caller=seen.whose.user,
        agent=seen.whose.agent,
        act=tuple(first.get("act") or ()),
        delegation=first.get("delegation") or "",
        task=first.get("task") or "",
        part_of=first.get("part_of") or "",
        after=tuple(first.get("after") or ()),
        trace_id=first.get("trace_id") or "",
        effect=first.get("mutation_class") or "",
        status=status,
        code=code,
        latency_ms=None if decided is None else decided.latency_ms,
        attempts=0 if decided is None else decided.attempts,
        replayed=decided is not None and decided.kind == "replay",
        observation=observation,
        outcome=None if observation is None else observation.outcome,
        passages=ways,
        decided=decided,
        why=_why(status, code, decided, seen),
        policies=_policies(told, decided) if seen.audited else (),
        decision_id=last(told, "policy_decision_id"),
        approval=seen.approval,
        rests_on=last([one for one in told if one.kind == "intent"], "approval_id"),
        ledger=None if operation is None else _ledger(operation, told),
        alarms=tuple(str(one.body.get("alarm")) for one in told if one.kind == "security"),
        moments=tuple(sorted(_moments(told, ways, seen), key=lambda moment: moment.at)),
        records=tuple(map(_line, seen.told)) if seen.audited else (),
        audited=seen.audited,
    )


def _decided(ways: Sequence[Passage], operation: Operation | None) -> Passage | None:
    """The way that counts: the one that ran, unless the call waits anew."""
    waits = operation is None or operation.state is State.HELD
    ran = [] if waits else [way for way in ways if way.kind in RAN or way.kind == "intent"]
    return (ran or ways or (None,))[-1]


def _first(told: Sequence[Told], operation: Operation | None) -> dict[str, Any]:
    """What the first record of the call says that all of them say."""
    body: Mapping[str, Any] = next((one.body for one in told if "tool" in one.body), {})
    version = str(body.get("tool", "")).partition("@")[2]
    kept = {} if operation is None else {"at": operation.created_at, "trace_id": operation.trace_id}
    if operation is not None:
        version = version or operation.version
    return {"at": told[0].at if told else 0.0, **kept, **body, "version": version}


def _status(decided: Passage | None, operation: Operation | None, observation: Observation | None) -> str:
    if operation is not None and operation.state.running and not operation.orphaned:
        return RUNNING
    if observation is not None:
        return observation.status.value
    return RUNNING if decided is None else decided.status


def _why(status: str, code: str, decided: Passage | None, seen: Seen) -> str:
    observation, asked = seen.observation, seen.approval
    if status == RUNNING:
        return "every gate let it pass; it is running, or its worker has not said yet what became of it"
    if status == Status.HELD and asked is not None and asked.answer is Answer.PENDING:
        return f"waiting for approval by {need(asked.missing)}"
    if observation is not None and observation.message:
        return observation.message
    if decided is not None and decided.kind == "replay":
        return "it had been answered before; it got that answer, and nothing ran"
    if status == Status.PREVIEW:
        return "it was only to be previewed; nothing ran"
    return why(code) if code else "every gate let it pass, and it ran"


def _policies(told: Sequence[Told], decided: Passage | None) -> tuple[str, ...]:
    made = [one.body["decision"] for one in told if one.body.get("decision")]
    return tuple(made[-1].get("policies") or ()) if made and decided is not None else ()


def last(told: Sequence[Told], name: str) -> str:
    return str(next((one.body[name] for one in reversed(told) if one.body.get(name)), ""))


def _ledger(operation: Operation, told: Sequence[Told]) -> Ledger:
    times = {one.kind: one.at for one in told}
    held = [one.at for one in told if one.kind in ("ask", "hold")]
    return Ledger(
        state=operation.state.value,
        key=operation.ref.key,
        key_source=operation.key_source.value,
        epoch=operation.epoch,
        created_at=operation.created_at,
        updated_at=operation.updated_at,
        held_at=held[0] if held else None,
        claimed_at=times.get("intent"),
        ended_at=times.get("outcome"),
        settled=tuple(_settled(one) for one in told if one.kind == "settle" and "to" in one.body),
        note=operation.note,
        orphaned=operation.orphaned,
    )


def _settled(one: Told) -> Settled:
    body = one.body
    said = {"by": str(body.get("caller")), "was": str(body.get("from")), "became": str(body["to"])}
    return Settled(at=one.at, note=settled_note(body), **said)


def _moments(told: Sequence[Told], ways: Sequence[Passage], seen: Seen) -> Iterator[Moment]:
    who = f"{seen.whose.user} through {seen.whose.agent}"
    for number, way in enumerate(ways):
        again = " again" if number else ""
        yield Moment(at=way.at, what=f"proposed{again} by {who}", kind="proposed", by=seen.whose.user)
    for one in told:
        gate = one.body.get("gate")
        yield Moment(
            at=one.at,
            what=sentence(one),
            kind=KINDS.get(one.kind, "control"),
            by=str(one.body.get("caller", "")),
            gate=gate,
            verdict=DECIDED.get(one.kind) if gate else Said.RAN if one.kind in RAN else None,
            micros=_whole(one.body),
            record=one.entry.record.id if seen.audited else None,
        )


def _whole(body: Mapping[str, Any]) -> int | None:
    """How long a passage took, as far as its steps tell."""
    said = body.get("gates") or ()
    return max(said.values() if isinstance(said, dict) else said, default=None)


def _line(one: Told) -> Line:
    record, body = one.entry.record, one.body
    shown = {name: value for name, value in body.items() if name not in _SEALED}
    if isinstance(decision := body.get("decision"), dict):
        shown["decision"] = {name: value for name, value in decision.items() if name != "facts"}
    return Line(
        id=record.id,
        leaf=one.entry.leaf,
        kind=record.kind,
        at=record.at,
        by=str(body.get("caller", "")),
        what=sentence(one),
        body=shown,
        hash=record.hash.hex(),
    )
