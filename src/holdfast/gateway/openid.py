"""How does somebody sign in to the console at the issuer? OpenID Connect, authorization code with PKCE.

The browser carries what only it must bring back, sealed: state, nonce and the proof of the code. What comes
of it is a token like any other, which has to pass the same checks as over REST: the access token, unless the
audience this gateway accepts is the console's own client; then the ID token. The ID token is checked in both
cases, for its nonce.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import orjson

from holdfast.config import Config
from holdfast.gateway.outgoing import Egress
from holdfast.identity import Identity, Unauthenticated
from holdfast.model.defaults import JWKS_DEADLINE_S, JWKS_REFRESH_S
from holdfast.model.errors import HoldfastError, StoreError
from holdfast.model.timeout import timeout
from holdfast.ports import Clock, Secrets

if TYPE_CHECKING:
    from holdfast.identity.jwt import IssuerTokens
    from holdfast.upstreams.http.outgoing import Outgoing

EVERYWHERE = "*"
FLOW_S = 600.0
"""From the sign-in page there and back."""
MOST_BYTES = 256 << 10
LONGEST = 4096
"""Characters of what a browser keeps for us meanwhile."""


@dataclass(frozen=True, slots=True)
class Begun:
    url: str
    """Where the browser goes."""
    flow: str
    """What it brings back, and cannot read."""


@dataclass(frozen=True, slots=True)
class Finished:
    token: str
    then: str
    """The page that was wanted when it began."""


@dataclass(frozen=True, slots=True)
class _Places:
    authorization: str
    token: str


class OpenId:
    """Hung on the gateway as `openid`, where the console has a client at the issuer."""

    def __init__(
        self, config: Config, egress: Egress, identity: Identity, secrets: Secrets, clock: Clock
    ) -> None:
        auth = config.auth
        self._auth, self._client_id = auth, config.console.client_id or ""
        self._issuer, self._identity = auth.issuer or "", identity
        self._egress, self._secrets, self._clock = egress, secrets, clock
        self._places: _Places | None = None
        self._looked = -inf

    @property
    def host(self) -> str:
        """What people know the issuer by."""
        return urlsplit(self._issuer).netloc

    async def begin(self, back: str, then: str) -> Begun:
        """`back`: where the issuer sends the browser afterwards. Raises HoldfastError."""
        places = await self._found()
        state, nonce, proof = (secrets.token_urlsafe(32) for _ in range(3))
        flow = {"state": state, "nonce": nonce, "proof": proof, "back": back, "then": then}
        challenge = base64.urlsafe_b64encode(sha256(proof.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "client_id": self._client_id,
            "response_type": "code",
            "scope": " ".join(dict.fromkeys(("openid", *self._auth.scopes))),
            "redirect_uri": back,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **self._resource(),
        }
        mark = "&" if "?" in places.authorization else "?"
        return Begun(f"{places.authorization}{mark}{urlencode(asked)}", self._sealed(flow))

    async def finish(self, flow: str, brought: Mapping[str, str]) -> Finished:
        """What the browser came back with; raises Unauthenticated."""
        kept = self._opened(flow)
        if not compare_digest(kept["state"].encode(), brought.get("state", "").encode()):
            raise Unauthenticated("this sign-in was begun elsewhere")
        if brought.get("iss", self._issuer) != self._issuer:  # RFC 9207
            raise Unauthenticated("another issuer answered")
        if not (code := brought.get("code")):
            raise Unauthenticated("the issuer gave no code")
        said = await self._exchanged(code, kept)
        id_token = _text(said, "id_token")
        await self._check(id_token, kept["nonce"])
        own = self._auth.audience == self._client_id
        return Finished(id_token if own else _text(said, "access_token"), kept["then"])

    # --- asking the issuer ----------------------------------------------------------------

    async def _exchanged(self, code: str, kept: Mapping[str, str]) -> Mapping[str, Any]:
        from holdfast.upstreams.http.outgoing import NotFetched

        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": kept["back"],
            "code_verifier": kept["proof"],
            "client_id": self._client_id,
            **self._resource(),
        }
        try:
            reply = await self._outgoing().ask(
                "POST",
                (await self._found()).token,
                purpose="a sign-in",
                limit_bytes=MOST_BYTES,
                deadline_s=JWKS_DEADLINE_S,
                headers={"content-type": "application/x-www-form-urlencoded", "accept": "application/json"},
                body=urlencode(form).encode(),
            )
        except NotFetched as error:
            raise Unauthenticated(f"the issuer cannot be asked: {error}") from None
        said = _json(reply.body)
        if reply.status != 200 or str(said.get("token_type", "")).lower() != "bearer":
            raise Unauthenticated(f"the issuer gave no token: HTTP status {reply.status}")
        return said

    async def _check(self, id_token: str, nonce: str) -> None:
        """That it is for this client, and for this sign-in."""
        tokens = self._tokens().meant_for(self._client_id)
        try:
            said, _ = tokens.opened(id_token)
        except Unauthenticated:
            if not await tokens.learn(id_token):
                raise
            said, _ = tokens.opened(id_token)
        if not compare_digest(str(said.get("nonce", "")).encode(), nonce.encode()):
            raise Unauthenticated("this token was made for another sign-in")
        if said.get("azp", self._client_id) != self._client_id:
            raise Unauthenticated("this token was made for another client")

    def _tokens(self) -> "IssuerTokens":
        from holdfast.identity.jwt import IssuerTokens

        return next(reader for reader in self._identity.readers if isinstance(reader, IssuerTokens))

    async def _found(self) -> _Places:
        """The issuer's endpoints by its own metadata, looked at again now and then."""
        now = self._clock.now()
        if self._places is None or not self._looked <= now < self._looked + JWKS_REFRESH_S:
            async with timeout(JWKS_DEADLINE_S):
                self._places = await self._discovered()
            self._looked = now
        return self._places

    async def _discovered(self) -> _Places:
        from holdfast.identity.jwks import as_safe, metadata_urls
        from holdfast.upstreams.http.outgoing import NotFetched

        outgoing, wrong = self._outgoing(), "it has no metadata"
        for where in metadata_urls(self._issuer):
            try:
                document = await outgoing.fetch(
                    where, purpose="a sign-in", limit_bytes=MOST_BYTES, deadline_s=JWKS_DEADLINE_S
                )
            except NotFetched as error:
                wrong = str(error)
                continue
            said = _json(document)
            found = _Places(str(said.get("authorization_endpoint")), str(said.get("token_endpoint")))
            if said.get("issuer") != self._issuer:
                raise HoldfastError("the issuer's metadata is of another issuer")
            if not as_safe(found.authorization, self._issuer) or not as_safe(found.token, self._issuer):
                raise HoldfastError("the issuer's metadata names no place to sign in that can be used")
            return found
        raise HoldfastError(f"the issuer cannot be asked where to sign in: {wrong}")

    def _outgoing(self) -> "Outgoing":
        return self._egress.outgoing("auth", self._auth.issuer, self._auth.jwks_url)

    def _resource(self) -> dict[str, str]:
        """What the token is to be meant for (RFC 8707), where that is a resource and not the client."""
        wanted = self._auth.resource or self._auth.audience or ""
        return {"resource": wanted} if urlsplit(wanted).scheme and wanted != self._client_id else {}

    # --- what the browser carries ---------------------------------------------------------

    def _sealed(self, flow: Mapping[str, str]) -> str:
        whole = {**flow, "for": "sign-in", "until": self._clock.now() + FLOW_S}
        return (
            base64.urlsafe_b64encode(self._secrets.seal(EVERYWHERE, orjson.dumps(whole))).decode().rstrip("=")
        )

    def _opened(self, flow: str) -> dict[str, Any]:
        try:
            if len(flow) > LONGEST:
                raise ValueError
            raw = base64.b64decode(flow + "=" * (-len(flow) % 4), altchars=b"-_", validate=True)
            kept = orjson.loads(self._secrets.unseal(EVERYWHERE, raw))
        except (StoreError, ValueError, binascii.Error):
            raise Unauthenticated("this sign-in was not begun here") from None
        if not isinstance(kept, dict) or kept.get("for") != "sign-in" or kept["until"] < self._clock.now():
            raise Unauthenticated("this sign-in took too long")
        return kept


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise Unauthenticated(f"the issuer gave no {name!r}")
    return value
