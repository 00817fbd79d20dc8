"""How does the page of a run follow it? Its story is sent again when the run, or a call of it, has moved."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import Response

from holdfast.model.timeout import timeout
from holdfast.servers.console import session
from holdfast.servers.console.feed import Heard, feed_of
from holdfast.servers.console.look import Look
from holdfast.servers.console.pages.chains import told
from holdfast.servers.console.security import HEADERS
from holdfast.servers.console.streams import streamed
from holdfast.servers.console.writing import rendered

STREAM_S = 60.0
"""How long one stream lasts; then the page asks again, and is asked again who it is."""
MOMENT_S = 1.0
"""A run moves without any call too, such as when it is cancelled: it is looked at this often."""
QUIET = 15
"""Looks that find nothing new before a line is sent, so that nobody between takes the connection for dead."""


async def events(look: Look) -> Response:
    """GET /chains/{run}/events"""
    context = await _now(look)
    if not context["live"] and context["mark"] == _known(look):
        return Response(status_code=204, headers=HEADERS)  # nothing more will come
    return streamed(look, _stories(look))


async def _stories(look: Look) -> AsyncIterator[bytes]:
    """Asks again who looks, each time: a session that has ended sees nothing more."""
    known, quiet, clock = _known(look), 0, asyncio.get_running_loop().time
    ends = clock() + STREAM_S
    async with feed_of(look.gateway).heard(look.principal) as heard:
        yield b"retry: 500\n\n"
        while clock() < ends and not look.gateway.draining:
            found = await session.find(look.gateway, look.request)
            if found is None:
                return
            context = await _now(now := Look(look.gateway, look.request, *found))
            moved, known = context["mark"] != known, context["mark"]
            quiet = 0 if moved else quiet + 1
            if moved:
                yield _message(now, context)
            elif quiet % QUIET == 0:
                yield b": still here\n\n"
            if not context["live"]:
                return
            await _moment(heard, context["run"].id)


async def _now(look: Look) -> dict[str, Any]:
    return await told(look, await look.gateway.chains.look(look.principal, look.request.path_params["run"]))


def _known(look: Look) -> str:
    """What the page shows already."""
    return look.request.headers.get("last-event-id") or look.query.get("mark", "")


def _message(look: Look, context: Mapping[str, Any]) -> bytes:
    around = {"csrf": look.session.token, "now": look.gateway.identity.now()}
    text = rendered("run_story.html", {**context, **around})
    lines = b"".join(b"data: " + line.encode() + b"\n" for line in text.splitlines())
    return f"id: {context['mark']}\n".encode() + lines + b"\n"


async def _moment(heard: Heard, run_id: str) -> None:
    """Until a call of the run has moved, or a moment is over."""
    try:
        async with timeout(MOMENT_S):
            while not any(row.task == run_id for row in await heard.get()):
                pass
    except TimeoutError:
        return
