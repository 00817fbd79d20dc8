"""How does a request get through the door of an HTTP server?

One pool of connections per upstream. Redirects are followed only to the same origin, cookies are not kept, no
proxy is asked, and the headers that open the door are added here and nowhere else.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from holdfast.model.egress.rules import Rules
from holdfast.model.errors import Code, NoEffect
from holdfast.upstreams.http.address import address
from holdfast.upstreams.http.errors import Barred, Broken, Unreachable
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.head import head, lines, request, said
from holdfast.upstreams.http.pool import Pool
from holdfast.upstreams.http.response import Response
from holdfast.upstreams.mcp.errors import Lost, Rejected, Unallowed, Unsent
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.secrets.opening import Opening

REDIRECTS = frozenset({307, 308})
CHALLENGES = frozenset({401, 403})

T = TypeVar("T")


class Heading:
    """Headers of many requests of one kind through one door; their bytes are made once."""

    __slots__ = ("fields", "made", "names", "url")

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = fields
        self.url = ""
        self.made = b""
        self.names: frozenset[str] = frozenset()


class Door:
    def __init__(self, target: HttpTarget, hidden: Hidden) -> None:
        self.target, self.hidden = target, hidden
        self.url = target.url
        self._headers = {"accept-encoding": "identity", **{k.lower(): v for k, v in target.headers.items()}}
        self._guard = target.guard or Guard(Rules(written=(target.url,)))
        self._standing = target.secrets
        self._pool: Pool | None = None

    def post(
        self,
        body: bytes,
        headers: Heading,
        principal: str = "",
        url: str | None = None,
        more: Mapping[str, str] | None = None,
        opening: Opening | None = None,
    ) -> Awaitable[Response]:
        """The answer's head, and mostly all of it; the caller reads or closes the rest.

        `more` are headers of this one post, `opening` the secrets that go with it. Raises Unsent or Lost,
        and NoEffect where nobody could be let in.
        """
        return self._knock("POST", url, headers, principal, body, more, opening)

    def get(
        self, headers: Mapping[str, str], principal: str = "", url: str | None = None
    ) -> Awaitable[Response]:
        return self._knock("GET", url, Heading(headers), principal, None)

    async def delete(self, headers: Mapping[str, str], principal: str = "") -> None:
        (await self._knock("DELETE", None, Heading(headers), principal, None)).close()

    async def _knock(
        self,
        verb: str,
        url: str | None,
        headers: Heading,
        principal: str,
        body: bytes | None,
        more: Mapping[str, str] | None = None,
        opening: Opening | None = None,
    ) -> Response:
        keys = () if self._standing is None and opening is None else self._keys(opening)
        response = await self._once(verb, url or self.url, headers, principal, body, more, keys)
        if response.status < 300:
            return response
        if response.status == 401 and keys and await self._renewed(keys):
            response.close()
            response = await self._once(verb, url or self.url, headers, principal, body, more, keys)
            if response.status < 300:
                return response
        if response.status in CHALLENGES and self.target.auth is not None:
            status, said = response.status, response.header("www-authenticate") or ""
            response.close()
            if not await _heeded(self.target.auth.challenged(principal, status, said)):
                raise Rejected(status, "; the server wants other credentials")
            response = await self._once(verb, url or self.url, headers, principal, body, more, keys)
        if response.status in REDIRECTS:
            moved = self._moved(response, url or self.url)
            response = await self._once(verb, moved, headers, principal, body, more, keys)
            if url is None and response.status < 300:
                self.url = moved
        return response

    async def _once(
        self,
        verb: str,
        url: str,
        headers: Heading,
        principal: str,
        body: bytes | None,
        more: Mapping[str, str] | None,
        keys: Sequence[Opening] = (),
    ) -> Response:
        for key in keys:
            more = {**(more or {}), **await _heeded(key.headers())}
            self.hidden.learn(key.shown)
        if self.target.auth is not None:
            opening = await _heeded(self.target.auth.headers(principal))
            more = {**(more or {}), **{name.lower(): value for name, value in opening.items()}}
            self.hidden.learn(value.rpartition(" ")[2] for value in opening.values())
        try:
            begun = headers.made if headers.url == url else self._head(verb, url, headers)
            if more:
                begun = self._with(more, begun, verb, url, headers)
            pool = self._pool or self._opened()
            if body is None:
                return await pool.harmless(request(begun, None))
            return await pool.request(request(begun, body))
        except Barred as error:
            raise Unallowed(str(error)) from None
        except (Unreachable, ValueError) as error:  # a ValueError is about the url or a header
            raise Unsent(f"cannot connect: {error}") from None
        except Broken as error:
            raise Lost(f"the connection broke before an answer: {error}") from None

    def _keys(self, opening: Opening | None) -> list[Opening]:
        """What a contract says comes last, and so counts where both have a header."""
        standing: list[Opening] = [] if self._standing is None else [self._standing.opening()]
        return standing if opening is None else [*standing, opening]

    async def _renewed(self, keys: Sequence[Opening]) -> bool:
        """Whether there are other secrets than those that were refused; EXE-2."""
        return any([await _heeded(key.renewed()) for key in keys])

    def _head(self, verb: str, url: str, headers: Heading) -> bytes:
        full, there = {**self._headers, **headers.fields}, address(url)
        headers.url, headers.made = url, head(verb, there, full)
        headers.names = frozenset(full) | said(there).keys()
        return headers.made

    def _with(self, more: Mapping[str, str], begun: bytes, verb: str, url: str, headers: Heading) -> bytes:
        """The head with what only this request has; that counts where both have it."""
        if headers.names.isdisjoint(more):
            return begun + lines(more)
        return head(verb, address(url), {**self._headers, **headers.fields, **more})

    def _opened(self) -> Pool:
        self._pool = Pool(address(self.target.url), self._guard)
        return self._pool

    def _moved(self, response: Response, here: str) -> str:
        response.close()
        there = within(self.target.url, here, response.header("location") or "")
        if there is None:
            raise Rejected(response.status, "; it points elsewhere: configure the url it points to")
        return there

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
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


def within(origin: str, here: str, place: str) -> str | None:
    """Where a place that a server names is, if that is at its own origin; None elsewhere or nowhere."""
    try:
        there = urljoin(here, place)
        a, b = urlsplit(there), urlsplit(origin)
        return there if (a.scheme, a.hostname, a.port) == (b.scheme, b.hostname, b.port) else None
    except ValueError:
        return None
