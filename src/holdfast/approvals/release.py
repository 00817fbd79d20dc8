"""How does the gateway itself propose a call again that people have approved? LIF-3.

From the sealed proposal, under the principal who made it as that principal stands now, from the top. Several
processes may try at once: the claim lets one of them act, as it does with any duplicate.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import Any

import orjson

from holdfast.model import defaults
from holdfast.model.approval import Approval
from holdfast.model.bounds import UNBOUND, Bounds
from holdfast.model.call import Principal, Proposal
from holdfast.model.fallback import Standing
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import Operation
from holdfast.model.vocabulary import Environment, KeySource
from holdfast.ports import Ports

log = logging.getLogger(__name__)

MOST_DOUBLINGS = 8

Propose = Callable[[Proposal], Awaitable[Observation]]
Stand = Callable[[Principal], Principal | None]
"""The same caller with today's rights, or None when there is no such caller any more."""


async def release(given: Approval, ports: Ports, stand: Stand, propose: Propose) -> Observation | None:
    """Try once; None where there was nothing to propose, or another process does."""
    wait_s = defaults.RELEASE_RETRY_S * 2 ** min(given.tries, MOST_DOUBLINGS)
    if not await ports.approvals.releasing(given, ports.clock.now() + wait_s):
        return None
    operation = await ports.ledger.find(given.ref)
    if operation is None or operation.payload is None:
        await ports.approvals.keep_back(given, "its proposal is no longer kept")
        return None
    said: dict[str, Any] = orjson.loads(operation.payload)
    principal = stand(principal_of(given.ref.tenant, said["principal"]))
    if principal is None:
        text = f"{given.ref.principal!r} may no longer call here"
        await ports.approvals.alarm(given.ref.tenant, "holdfast", f"release refused: {text}", given)
        await ports.approvals.keep_back(given, text)
        return None
    seen = await propose(proposal_of(operation, said, principal))
    if seen.status is Status.REFUSED and not seen.remedy.retryable:
        log.warning("approved call %s was refused when it was released: %s", given.call_id, seen.code)
        await ports.approvals.keep_back(given, f"{seen.code}: {seen.message}")
    if seen.status is Status.DONE and seen.tool != given.ref.tool:
        await ports.approvals.keep_back(given, f"{seen.tool!r} answered in its place")
    return seen


def proposal_of(operation: Operation, said: dict[str, Any], principal: Principal) -> Proposal:
    """The proposal as it was made, under the same name."""
    requested = operation.key_source in (KeySource.REQUEST, KeySource.ADOPTED)
    derived = operation.key_source is KeySource.DERIVED
    return Proposal(
        tool=operation.ref.tool,
        arguments=said["arguments"],
        principal=principal,
        version=said["version"],
        key=None if requested or derived else operation.ref.key,
        request_key=operation.ref.key if requested else None,
        task=said["task"],
        step=said["step"],
        session=said["session"],
        if_match=said["if_match"],
        plan_token=said.get("plan_token"),
        trace_id=operation.trace_id,
        environment=Environment(said["environment"]),
        fallback=Standing.read(said["fallback"]) if said.get("fallback") else None,
    )


def principal_of(tenant: str, said: Mapping[str, Any]) -> Principal:
    """Somebody as they were kept; with which rights they go on is asked of `Stand`."""
    return Principal(
        tenant=tenant,
        user=said["user"],
        agent=said["agent"],
        scopes=frozenset(said["scopes"]),
        trust=said["trust"],
        bounds=_bounds(said.get("bounds")),
        act=tuple(said.get("act", ())),
        rests_on=tuple(said.get("rests_on", ())),
    )


def _bounds(said: list[Any] | None) -> Bounds:
    if said is None:
        return UNBOUND
    tools, resources, until = said
    return Bounds(
        None if tools is None else frozenset(tools),
        None if resources is None else frozenset(resources),
        inf if until is None else until,
    )
