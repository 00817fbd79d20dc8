"""How does a client that can only be asked get through a call whose server returns its questions?

Each question is put to the client, and the call is made again with the answers, as often as the server wants,
within reason.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.model.errors import NoEffect
from holdfast.model.peer import Peer, Unanswerable
from holdfast.upstreams.mcp.answers import unfinished
from holdfast.upstreams.mcp.errors import Garbage
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.relay import QUESTIONS

ROUNDS = 10
"""As many as other clients of the protocol allow."""
PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.25
"""Before asking again a server that only wants to be asked again."""

Again = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def finished(
    again: Again, params: dict[str, Any], result: dict[str, Any], peer: Peer, hidden: Hidden
) -> dict[str, Any]:
    """The server's last word, once the client has answered everything; it is asked nothing `hidden`."""
    pause = PAUSE_S
    for _ in range(ROUNDS):
        if not unfinished(result):
            return result
        more: dict[str, Any] = {}
        if questions := result.get("inputRequests"):
            more["inputResponses"] = await _responses(hidden.purged(questions), peer)
        else:
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)
        if (state := result.get("requestState")) is not None:
            more["requestState"] = state
        result = await again({**params, **more})
    if unfinished(result):
        raise NoEffect(f"the server still asks for more after {ROUNDS} rounds of questions")
    return result


async def _responses(questions: Any, peer: Peer) -> dict[str, Any]:
    """One after the other: a person answers them."""
    if not isinstance(questions, dict):
        raise Garbage("the server's questions cannot be read")
    answers: dict[str, Any] = {}
    for name, question in questions.items():
        method = question.get("method") if isinstance(question, dict) else None
        if method not in QUESTIONS:
            raise Garbage(f"the server asks for {str(method)[:100]!r}, which is no question to a client")
        try:
            answers[name] = dict(await peer.ask(method, question.get("params")))
        except Unanswerable as error:
            said = f"the tool asks its client for {method!r}, which it cannot answer: {error}"
            raise NoEffect(said) from None
    return answers
