"""Calls as they are when they reach the claim, without the gates before it."""

import itertools
from collections.abc import Sequence
from typing import Any

from holdfast.model.call import Call, Principal, Proposal
from holdfast.model.canonical import fingerprint
from holdfast.model.contract import Affordance, Contract, EffectEntry, Identity, Transactional
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status
from holdfast.model.stage import Stage
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import Effect, KeySource, Operation, Undo
from holdfast.ports import Clock

ALICE = Principal(user="alice", agent="bot", roles=frozenset({"user"}), scopes=frozenset({"pay.*"}), trust=70)
BOB = Principal(user="bob", agent="bot")
OTHER_TENANT = Principal(tenant="acme", user="alice", agent="bot")

_SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}}}
_COUNT = itertools.count(1)


def make_tool(name: str, effect: Effect, version: str = "1.0.0") -> Tool:
    entry = EffectEntry(resource="payment", operation=Operation.CREATE, scope="one")
    return Tool.compile(
        Contract(
            identity=Identity(namespace="bank", name=name, version=version),
            affordance=Affordance(description="moves money", input_schema=_SCHEMA),
            transactional=Transactional(
                effect=effect, undo=Undo.EXACT, manifest=(entry,) if effect.writes else ()
            ),
        )
    )


PAY = make_tool("pay", Effect.MEDIUM_RISK_WRITE)
PAY_2 = make_tool("pay", Effect.MEDIUM_RISK_WRITE, "2.0.0")
LOOK = make_tool("look", Effect.READ_ONLY)


def make_call(
    clock: Clock,
    key: str | None = "k-1",
    *,
    tool: Tool = PAY,
    principal: Principal = ALICE,
    arguments: dict[str, Any] | None = None,
    stage: Sequence[tuple[str, Stage]] = (),
    seconds: float = 5.0,
) -> Call:
    number = next(_COUNT)
    given = {"amount": 7} if arguments is None else arguments
    proposal = Proposal(tool=tool.contract.tool, arguments=given, principal=principal, key=key)
    call = Call(
        proposal=proposal,
        id=f"call_{number:09d}",
        trace_id=f"{number:032x}",
        nonce=f"nonce_{number:09d}",
        queued_at=clock.now(),
        started=clock.monotonic(),
        deadline=clock.monotonic() + seconds,
    )
    call.key, call.key_source = key, KeySource.CALLER if key else None
    call.tool, call.arguments = tool, dict(given)
    call.fingerprint = fingerprint(tool.contract.digest, given)
    call.commitment = "commitment-of-the-arguments"
    call.staged = list(stage)
    return call


def unnamed(call: Call) -> Call:
    """The same call by a client that knows no keys, and waits: its protocol made the key."""
    call.proposal = call.proposal._replace(key=None, request_key=call.key)
    call.key_source, call.waited_for = KeySource.REQUEST, True
    return call


def observed(call: Call, status: Status = Status.DONE, code: Code | None = None, **said: Any) -> Observation:
    return Observation(
        call_id=call.id,
        tool=call.tool.contract.tool,
        status=status,
        code=code,
        trace_id=call.trace_id,
        **said,
    )
