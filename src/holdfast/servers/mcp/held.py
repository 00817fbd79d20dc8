"""May the client's own dialogue ask its user for the approval a call waits for?

A convenience, never the way (APR-5): only where the call needs nothing but the user's own consent, the client
can ask, and the operator trusts that this client shows what it is asked to a person. Everybody else gets a
readable answer, has it approved elsewhere, and calls again.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.model import defaults
from holdfast.model.approval import Answer, Approval
from holdfast.model.errors import HoldfastError
from holdfast.model.peer import Unanswerable
from holdfast.model.timeout import timeout
from holdfast.servers.mcp.peer import LegacyClient, can_answer
from holdfast.servers.mcp.running import ASKS, Propose, Question, Ran, came_back, run
from holdfast.servers.mcp.state import State, sealed

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub

ELICIT = "elicitation/create"
NAME = "approval"
"""What the question is called in `inputRequests`."""
SHOWN = 2000
"""Characters of the arguments in the question; all of them are in the approval's packet."""


async def asked(
    hub: "Hub", exchange: "Exchange", tool: str, arguments: Mapping[str, Any], ran: Ran, propose: Propose
) -> Ran | Question:
    """The held call again, once its user said yes; as it is, where the client cannot be asked."""
    question = await _consent(hub, exchange, ran)
    if question is None:
        return ran
    if exchange.modern:
        state = State(what=tool, key=ran.key, approval=question.id)
        return Question(
            {
                "resultType": ASKS,
                "inputRequests": {NAME: {"method": ELICIT, "params": _dialogue(question)}},
                "requestState": sealed(hub.gateway, exchange.principal, state),
            }
        )
    client = LegacyClient(exchange)
    exchange.delivery.awaits(client.leave)
    try:
        async with timeout(defaults.ASK_S):
            said = await client.ask(ELICIT, _dialogue(question))
    except (Unanswerable, TimeoutError):
        return ran
    decided = await _decide(hub, exchange, question.id, said)
    return await run(hub, exchange, tool, arguments, propose) if decided else ran


async def heard(hub: "Hub", exchange: "Exchange", tool: str) -> None:
    """A modern client comes back with its user's answer: it is taken down before the call is made again."""
    state = came_back(hub, exchange, tool)
    if state is None or state.approval is None:
        return
    responses = exchange.params.get("inputResponses")
    said = responses.get(NAME) if isinstance(responses, Mapping) else None
    if isinstance(said, Mapping) and _trusted(hub, exchange):
        await _decide(hub, exchange, state.approval, said)


async def _consent(hub: "Hub", exchange: "Exchange", ran: Ran) -> Approval | None:
    """The question, where this client may put it to its user."""
    waits = ran.observation.approval
    if waits is None or not _trusted(hub, exchange) or not can_answer(exchange.capabilities, ELICIT, None):
        return None
    question = await hub.gateway.approval(exchange.principal, waits.id)
    if question is None or question.answer is not Answer.PENDING or set(question.missing) != {"user"}:
        return None
    return question


def _trusted(hub: "Hub", exchange: "Exchange") -> bool:
    return exchange.client in hub.gateway.config.approvals.trusted_clients


async def _decide(hub: "Hub", exchange: "Exchange", approval: str, said: Mapping[str, Any]) -> bool:
    """Whether the user decided; closing the dialogue decides nothing."""
    content = said.get("content")
    yes = isinstance(content, Mapping) and content.get("approve") is True
    if said.get("action") not in ("accept", "decline"):
        return False
    user = replace(exchange.principal, roles=frozenset({"user"}))
    note = f"asked in the dialogue of client {(exchange.client or '')[:128]!r}"
    try:
        await hub.gateway.decide(user, approval, said["action"] == "accept" and yes, note)
    except HoldfastError:  # answered elsewhere, or too late: the call itself finds out
        return True
    return True


def _dialogue(question: Approval) -> dict[str, Any]:
    packet = question.packet
    shown = orjson.dumps(packet.get("arguments")).decode()[:SHOWN]
    agent = packet.get("requested_by", {}).get("agent", "an agent")
    return {
        "mode": "form",
        "message": (
            f"{agent} wants to call {packet.get('action')}: {packet.get('consequence')}\n"
            f"Arguments: {shown}\nUndo: {packet.get('rollback', {}).get('status')}\nApproval {question.id}"
        ),
        "requestedSchema": {
            "type": "object",
            "properties": {"approve": {"type": "boolean", "title": "Let it happen", "default": False}},
            "required": ["approve"],
        },
    }
