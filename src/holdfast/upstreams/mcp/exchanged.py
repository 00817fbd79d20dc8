"""Which token does a caller get for an upstream, where a token server changes one into another (RFC 8693)?

What the gateway says of the caller goes in, a token for this upstream comes out: one for each principal,
kept in memory until shortly before it ends. One that was refused is exchanged anew, once. Where none can be
had and the last one has ended, nothing is sent (AUT-8).
"""

import logging
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

import orjson

from holdfast.model import defaults
from holdfast.model.errors import Code, NoEffect
from holdfast.upstreams.http.outgoing import NotFetched, Outgoing, Reply
from holdfast.upstreams.mcp.oauth_grant import EARLY_S, EARLY_SHARE
from holdfast.upstreams.secrets.opening import Standing
from holdfast.upstreams.single import Single

log = logging.getLogger(__name__)

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT = "urn:ietf:params:oauth:token-type:jwt"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
MOST_BYTES = 256 * 1024
MOST = 4096
"""Principals whose tokens are kept."""
SECRET = "client_secret"

_presented: ContextVar[tuple[object, str, str] | None] = ContextVar("exchanged", default=None)
"""The token that went with this task's request: by the time it is refused there may be another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked of the token server, and as whom."""

    token_url: str
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    standing: Standing | None = None
    """The client's secret under `client_secret`, where it is read with each use."""
    audience: str | None = None
    resource: str | None = None
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    at: float
    ends_at: float

    def alive(self, now: float) -> bool:
        return now < self.ends_at

    def fresh(self, now: float) -> bool:
        return now < self.ends_at - min(EARLY_S, (self.ends_at - self.at) * EARLY_SHARE)


class Exchanger:
    """Implements `Authorizer`."""

    def __init__(
        self,
        upstream: str,
        wanted: Wanted,
        subject: Callable[[str], str],
        outgoing: Outgoing,
        now: Callable[[], float],
    ) -> None:
        """`subject` gives what the gateway says of a principal; the empty one is the gateway itself."""
        self._upstream, self._wanted, self._subject = upstream, wanted, subject
        self._outgoing, self._now = outgoing, now
        self._tokens: dict[str, _Token] = {}
        self._asking: Single[_Token] = Single()

    async def headers(self, principal: str) -> Mapping[str, str]:
        token = self._tokens.get(principal)
        if token is None or not token.fresh(self._now()):
            token = await self._renewed(principal, token)
        _presented.set((self, principal, token.text))
        return {"Authorization": f"Bearer {token.text}"}

    async def challenged(self, principal: str, status: int, www_authenticate: str) -> bool:
        if status != 401:
            return False
        presented, token = _presented.get(), self._tokens.get(principal)
        known = presented is not None and presented[:2] == (self, principal)
        refused = presented[2] if presented is not None and known else "" if token is None else token.text
        if token is None or token.text == refused:
            token = await self._asking.ask(principal, lambda: self._exchanged(principal))
        return token.text != refused

    async def close(self) -> None:
        await self._asking.close()

    async def _renewed(self, principal: str, before: _Token | None) -> _Token:
        try:
            return await self._asking.ask(principal, lambda: self._exchanged(principal))
        except NoEffect as error:
            passing = error.code is Code.DEPENDENCY_UNAVAILABLE
            if before is not None and passing and before.alive(self._now()):
                return before
            raise

    async def _exchanged(self, principal: str) -> _Token:
        reply = await self._asked(self._form(principal))
        said = _json(reply.body)
        if reply.status != 200:
            raise self._refused(reply.status, said)
        token = self._read(said)
        self._tokens.pop(principal, None)
        if len(self._tokens) >= MOST:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[principal] = token
        return token

    def _form(self, principal: str) -> dict[str, str]:
        wanted = self._wanted
        form = {
            "grant_type": GRANT,
            "subject_token": self._subject(principal),
            "subject_token_type": JWT,
            "requested_token_type": ACCESS,
        }
        more = {"audience": wanted.audience, "resource": wanted.resource, "scope": " ".join(wanted.scopes)}
        return form | {name: value for name, value in more.items() if value}

    async def _asked(self, form: dict[str, str]) -> Reply:
        """As the client; a secret that is not taken is read anew, once."""
        opening = None if self._wanted.standing is None else self._wanted.standing.opening()
        if opening is None:
            return await self._post(form, self._wanted.client_secret)
        reply = await self._post(form, (await opening.headers())[SECRET])
        if reply.status == 401 and await opening.renewed():
            return await self._post(form, (await opening.headers())[SECRET])
        return reply

    async def _post(self, form: dict[str, str], secret: str | None) -> Reply:
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        client_id = self._wanted.client_id
        if secret is not None and client_id is not None:
            both = f"{quote_plus(client_id)}:{quote_plus(secret)}"
            headers["authorization"] = f"Basic {b64encode(both.encode()).decode()}"
        elif client_id is not None:
            form = {**form, "client_id": client_id}
        try:
            return await self._outgoing.ask(
                "POST",
                self._wanted.token_url,
                purpose="a token",
                limit_bytes=MOST_BYTES,
                deadline_s=defaults.SECRET_READ_S,
                headers=headers,
                body=urlencode(form).encode(),
            )
        except NotFetched as error:
            log.warning("upstream %s: its token server cannot be asked: %s", self._upstream, error)
            raise self._no_token(passing=not error.barred) from None

    def _read(self, said: Mapping[str, Any]) -> _Token:
        text, kind, life = said.get("access_token"), said.get("token_type", ""), said.get("expires_in")
        if not isinstance(text, str) or not text or not text.isascii() or not text.isprintable():
            log.warning("upstream %s: its token server answered without a token", self._upstream)
            raise self._no_token(passing=False)
        if not isinstance(kind, str) or kind.lower() != "bearer":
            log.warning("upstream %s: its token server gave a token that is no bearer token", self._upstream)
            raise self._no_token(passing=False)
        lasts = float(life) if isinstance(life, int | float) and life > 0 else defaults.EXCHANGED_S
        now = self._now()
        return _Token(text, now, now + lasts)

    def _refused(self, status: int, said: Mapping[str, Any]) -> NoEffect:
        """Only the error's code is told: a description may quote what was sent."""
        code = said.get("error")
        named = f" ({code})" if isinstance(code, str) and code.isidentifier() and len(code) < 64 else ""
        log.warning("upstream %s: its token server answered %s%s", self._upstream, status, named)
        return self._no_token(passing=status >= 500 or status == 429)

    def _no_token(self, *, passing: bool) -> NoEffect:
        if passing:
            text = f"no token for upstream {self._upstream!r} can be had now; nothing was sent"
            return NoEffect(f"{text}, try again later", Code.DEPENDENCY_UNAVAILABLE)
        text = f"the token server gives no token for upstream {self._upstream!r}; nothing was sent"
        return NoEffect(f"{text}, ask an operator to have it issued", Code.PERMISSION_DENIED)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
