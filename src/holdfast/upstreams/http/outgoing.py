"""How is one thing asked of a server that is not an upstream: its keys, its metadata, a token, a secret?

One connection, one request, one answer with an end. No redirect is followed and no cookie kept, so nothing
that goes with a request is ever carried to another origin.
"""

import ssl
from collections.abc import Mapping

from holdfast.model.errors import HoldfastError
from holdfast.model.timeout import timeout
from holdfast.upstreams.http.address import address
from holdfast.upstreams.http.errors import Barred, Broken, Unreachable
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.head import head, request
from holdfast.upstreams.http.pool import Pool
from holdfast.upstreams.http.response import Response

_NOTHING: Mapping[str, str] = {}


class NotFetched(HoldfastError):
    """No usable answer came. The text has no address and no secret in it."""

    def __init__(self, why: str, *, sent: bool, barred: bool = False) -> None:
        super().__init__(why)
        self.sent = sent
        """False: nothing was written to anybody."""
        self.barred = barred
        """The egress rules do not let the gateway connect there: trying again changes nothing."""


class Reply:
    """All of an answer."""

    __slots__ = ("_head", "body", "status")

    def __init__(self, answered: Response, body: bytes) -> None:
        self._head, self.status, self.body = answered, answered.status, body

    def header(self, name: str) -> str | None:
        """The value of the first header of this name, which is in lower case."""
        return self._head.header(name)


class Outgoing:
    """Requests of one part of the gateway, under its egress rules."""

    def __init__(self, guard: Guard, trust: ssl.SSLContext | None = None) -> None:
        self._guard, self._trust = guard, trust

    async def fetch(self, url: str, *, purpose: str, limit_bytes: int, deadline_s: float) -> bytes:
        """What is there, without credentials; raises NotFetched, also for any status but 200."""
        reply = await self.ask("GET", url, purpose=purpose, limit_bytes=limit_bytes, deadline_s=deadline_s)
        if reply.status != 200:
            moved = "; no redirect is followed: configure where it leads" if 300 <= reply.status < 400 else ""
            raise NotFetched(f"the server answered with HTTP status {reply.status}{moved}", sent=True)
        return reply.body

    async def ask(
        self,
        verb: str,
        url: str,
        *,
        purpose: str,
        limit_bytes: int,
        deadline_s: float,
        headers: Mapping[str, str] = _NOTHING,
        body: bytes | None = None,
    ) -> Reply:
        """The answer, whatever its status: a redirect comes back as it is. Raises NotFetched."""
        try:
            there = address(url)
            fields = {"accept-encoding": "identity"} | {name.lower(): said for name, said in headers.items()}
            asked = request(head(verb, there, fields), body)
        except ValueError as error:
            raise NotFetched(str(error), sent=False) from None
        pool = Pool(there, self._guard, self._trust, purpose)
        try:
            async with timeout(deadline_s):
                return await _answered(pool, asked, limit_bytes)
        except TimeoutError:
            raise NotFetched(f"no answer within {deadline_s:g} s", sent=True) from None
        except Unreachable as error:
            barred = isinstance(error, Barred)
            said = str(error) if barred else f"cannot connect: {error}"
            raise NotFetched(said, sent=False, barred=barred) from None
        except Broken as error:
            raise NotFetched(f"the connection broke: {error}", sent=True) from None
        finally:
            await pool.close()


async def _answered(pool: Pool, asked: bytes, limit_bytes: int) -> Reply:
    response = await pool.request(asked)
    body = bytearray()
    async for chunk in response.chunks():
        body += chunk
        if len(body) > limit_bytes:
            raise NotFetched(f"the answer has more than {limit_bytes} bytes", sent=True)
    return Reply(response, bytes(body))
