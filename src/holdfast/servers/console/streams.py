"""How many live pages may somebody have open, and is who looks at one still who opened it?

A browser opens six connections to a place; whoever opens hundreds wants something else. What somebody sees
is asked anew for every row: a stream of whoever may see less by now ends, and the page asks for another.
"""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator

from starlette.responses import Response, StreamingResponse

from holdfast.servers.answers import TransportError
from holdfast.servers.console import session
from holdfast.servers.console.look import Look
from holdfast.servers.console.security import HEADERS

MOST = 24
"""Of one person, in this process: on all their screens."""
TOGETHER = 1000
"""Of everybody."""
_OPEN: Counter[str] = Counter()


def streamed(look: Look, pieces: AsyncIterator[bytes]) -> Response:
    """Raises TransportError where there are too many already."""
    if _OPEN[_name(look)] >= MOST or _OPEN.total() >= TOGETHER:
        raise TransportError(429, "too many live pages are open already", "close one of them")
    return StreamingResponse(_counted(look, pieces), headers=HEADERS, media_type="text/event-stream")


async def still_there(look: Look) -> bool:
    """Whether the session lasts, and its person may see what they could when this began."""
    known = await session.find(look.gateway, look.request)
    return known is not None and known[0].roles == look.principal.roles


async def _counted(look: Look, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    name = _name(look)
    _OPEN[name] += 1
    try:
        async for piece in pieces:
            yield piece
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
        _OPEN[name] -= 1
        if not _OPEN[name]:
            del _OPEN[name]


def _name(look: Look) -> str:
    return f"{look.principal.tenant}/{look.principal.user}"
