"""What does an upstream's authorization server let somebody do, and where is that kept?"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import unquote

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ConfigDict

EARLY_S = 60.0
"""Tokens are renewed this long before they end, so that none ends on its way (AUT-4)."""
EARLY_SHARE = 0.1
"""Of a token that lives shorter than ten minutes, its last tenth."""


class Owner(NamedTuple):
    """Whose sign-in it is: a person's, whichever of their agents calls, or the gateway's own."""

    tenant: str
    user: str

    @classmethod
    def of(cls, principal: str) -> "Owner":
        """Of `tenant/user/agent`; a name without a tenant belongs to the tenant 'default'."""
        match [unquote(part) for part in principal.split("/")]:
            case [""]:
                return GATEWAY
            case [tenant, user, _]:
                return cls(tenant, user)
            case [user, _]:
                return cls("default", user)
            case _:
                raise ValueError(f"{principal!r} is not 'tenant/user/agent'")


GATEWAY = Owner("*", "*")


@dataclass(frozen=True, slots=True)
class Challenge:
    """An upstream's 401 or 403, and what its `WWW-Authenticate` said."""

    status: int
    text: str

    @property
    def can_be_met(self) -> bool:
        return self.status == 401 or (self.status == 403 and self.field("error") == "insufficient_scope")

    @property
    def scopes(self) -> frozenset[str]:
        return frozenset(self.field("scope").split())

    def field(self, name: str) -> str:
        return extract_field_from_www_auth(self.response(), name) or ""

    def asking(self, scopes: tuple[str, ...]) -> "Challenge":
        """The same, as if it named these scopes too."""
        if not scopes:
            return self
        named = union_scopes(" ".join(scopes), self.field("scope"))
        return Challenge(self.status, f'Bearer scope="{named}", {self.text.removeprefix("Bearer ")}')

    def response(self) -> httpx2.Response:
        raw = self.text.encode("ascii", "replace")
        return httpx2.Response(self.status, headers=[(b"www-authenticate", raw)] if raw else None)


class TokenStore(Protocol):
    """Keeps one sealed value per owner and upstream; several processes share it.

    `at` orders the values: of two that different processes obtained at once, the newer stays.
    """

    async def load(self, owner: tuple[str, str], upstream: str) -> bytes | None: ...

    async def save(
        self, owner: tuple[str, str], upstream: str, value: bytes, at: float, *, new: bool = False
    ) -> bool:
        """Keep `value` and end any lease. False where a newer one is there, or, unless `new`, none is."""
        ...

    async def lease(self, owner: tuple[str, str], upstream: str, at: float, now: float, until: float) -> bool:
        """Whether the caller alone may replace the value of `at` until then."""
        ...

    async def drop(self, owner: tuple[str, str], upstream: str) -> bool: ...


class Grant(BaseModel):
    """What was obtained, and from whom. Everything of it is secret."""

    model_config = ConfigDict(frozen=True)

    holder: tuple[str, str, str]
    """Tenant, user and upstream: a sealed value that was moved to another row is seen."""
    at: float = 0.0
    tokens: OAuthToken | None = None
    spent: bool = False
    """There were tokens, and they cannot be renewed."""
    client: OAuthClientInformationFull | None = None
    """How the gateway registered itself."""
    issuer: str | None = None
    """The authorization server that may see what the configuration holds for it."""
    server: OAuthMetadata | None = None
    server_url: str | None = None
    resource: ProtectedResourceMetadata | None = None
    challenge: str = ""
    """What the upstream asked for last, in its own words."""
    wanted: str = ""
    """The challenge for more scopes that nobody has answered yet."""

    @property
    def token(self) -> str:
        return "" if self.tokens is None else self.tokens.access_token

    @property
    def renewable(self) -> bool:
        return self.tokens is not None and self.tokens.refresh_token is not None

    @property
    def scopes(self) -> frozenset[str]:
        return frozenset((self.tokens.scope or "").split()) if self.tokens else frozenset()

    def alive(self, now: float) -> bool:
        """Without a stated end it lives until it is refused."""
        return self.tokens is not None and now < self._end(0.0)

    def fresh(self, now: float) -> bool:
        return self.tokens is not None and now < self._end(EARLY_S)

    def _end(self, early_s: float) -> float:
        life = None if self.tokens is None else self.tokens.expires_in
        return float("inf") if life is None else self.at + life - min(early_s, life * EARLY_SHARE)

    def ended(self) -> "Grant":
        """Nothing of it can be used any more but what is known about the server."""
        return self.model_copy(update={"tokens": None, "spent": True})

    def unlocated(self) -> "Grant":
        """Without what is known about the servers, so that it is looked up anew."""
        return self.model_copy(update={"server": None, "server_url": None, "resource": None})

    def after(self, before: "Grant") -> "Grant":
        """RFC 6749 section 6: what a renewal leaves out stays as it was."""
        if self.tokens is None or before.tokens is None:
            return self
        stays = {
            "refresh_token": self.tokens.refresh_token or before.tokens.refresh_token,
            "scope": before.tokens.scope or self.tokens.scope,
        }
        tokens = self.tokens.model_copy(update=stays)
        return self.model_copy(update={"tokens": tokens, "wanted": before.wanted})

    def sealed_form(self) -> bytes:
        return self.model_dump_json(exclude_none=True, exclude_defaults=True).encode()
