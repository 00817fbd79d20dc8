"""How does a request get through the door of an HTTP server?

One pooled session per upstream. Redirects are followed only to the same origin, cookies are not kept, and the
headers that open the door are added here and nowhere else.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import aiohttp

from holdfast.model import defaults
from holdfast.model.errors import Code, NoEffect
from holdfast.upstreams.mcp.errors import Lost, Rejected, Unsent
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.target import HttpTarget

KEEP_ALIVE_S = 3.0
"""Shorter than what servers allow (uvicorn and Node: 5 s): nobody posts into a door that is closing."""
REDIRECTS = frozenset({307, 308})
CHALLENGES = frozenset({401, 403})
_BEFORE_SENDING = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ValueError)
"""A ValueError is about the url or a header."""

T = TypeVar("T")


class Door:
    def __init__(self, target: HttpTarget, hidden: Hidden) -> None:
        self.target, self.hidden = target, hidden
        self.url = target.url
        self._headers = {"accept-encoding": "identity", **{k.lower(): v for k, v in target.headers.items()}}
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            # The bulkhead bounds how many calls there are, so the pool need not.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=defaults.CONNECT_S),
                raise_for_status=False,
            )
        return self._session

    async def post(
        self, body: bytes, headers: Mapping[str, str], principal: str = "", url: str | None = None
    ) -> aiohttp.ClientResponse:
        """The answer's head; the caller reads or closes the rest.

        Raises Unsent or Lost, and NoEffect where nobody could be let in.
        """
        return await self._knock("POST", url, headers, principal, body)

    async def get(
        self, headers: Mapping[str, str], principal: str = "", url: str | None = None
    ) -> aiohttp.ClientResponse:
        return await self._knock("GET", url, headers, principal, None)

    async def delete(self, headers: Mapping[str, str], principal: str = "") -> None:
        (await self._knock("DELETE", None, headers, principal, None)).release()

    async def _knock(
        self, verb: str, url: str | None, headers: Mapping[str, str], principal: str, body: bytes | None
    ) -> aiohttp.ClientResponse:
        response = await self._once(verb, url or self.url, headers, principal, body)
        if response.status in CHALLENGES and self.target.auth is not None:
            status, said = response.status, response.headers.get("www-authenticate", "")
            response.release()
            if not await _heeded(self.target.auth.challenged(principal, status, said)):
                raise Rejected(status, "; the server wants other credentials")
            response = await self._once(verb, url or self.url, headers, principal, body)
        if response.status in REDIRECTS:
            moved = self._moved(response)
            response = await self._once(verb, moved, headers, principal, body)
            if url is None and response.status < 300:
                self.url = moved
        return response

    async def _once(
        self, verb: str, url: str, headers: Mapping[str, str], principal: str, body: bytes | None
    ) -> aiohttp.ClientResponse:
        full: dict[str, str] = {**self._headers, **headers}
        if self.target.auth is not None:
            opening = await _heeded(self.target.auth.headers(principal))
            full.update({name.lower(): value for name, value in opening.items()})
        try:
            return await self._open().request(verb, url, data=body, headers=full, allow_redirects=False)
        except _BEFORE_SENDING as error:
            raise Unsent(f"cannot connect: {_words(error)}") from None
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            raise Lost(f"the connection broke before an answer: {_words(error)}") from None

    def _moved(self, response: aiohttp.ClientResponse) -> str:
        response.release()
        there = urljoin(str(response.url), response.headers.get("location", ""))
        if not same_origin(there, self.target.url):
            raise Rejected(response.status, "; it points elsewhere: configure the url it points to")
        return there

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        if self.target.auth is not None:
            await self.target.auth.close()


async def _heeded(authorizing: Awaitable[T]) -> T:
    """Whatever goes wrong on the way to credentials: nothing was done in anybody's name."""
    try:
        return await authorizing
    except NoEffect:
        raise
    except Exception as error:
        said = f"no credentials for the server could be had: {type(error).__name__}"
        raise NoEffect(said, Code.DEPENDENCY_UNAVAILABLE) from error


def same_origin(one: str, other: str) -> bool:
    a, b = urlsplit(one), urlsplit(other)
    return (a.scheme, a.hostname, a.port) == (b.scheme, b.hostname, b.port)


def _words(error: Any) -> str:
    """What went wrong, without the address: it may carry a secret."""
    if isinstance(inner := getattr(error, "os_error", error), OSError) and inner.strerror:
        return inner.strerror.lower()
    return type(error).__name__
