"""A token server that changes what a gateway says of its callers into tokens (RFC 8693).

It checks the subject token with the gateway's published key, as a real one would, and keeps what it was
asked.
"""

from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.identity.subject import Subjects
from tests.upstreams.mcp.places import serving

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"


class Hand:
    """Signs as a store's key does."""

    def sign(self, tenant: str, purpose: str, data: bytes) -> str:
        from hashlib import sha256

        return sha256(b"\0".join((b"a key for tests", tenant.encode(), purpose.encode(), data))).hexdigest()


@dataclass
class Sts:
    subjects: Subjects
    secret: str = "client-secret-one"
    life_s: int | None = 600
    status: int = 200
    said: dict[str, Any] | None = None
    """What it answers instead."""
    asked: list[dict[str, str]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
    issued: list[str] = field(default_factory=list)
    url: str = ""

    async def token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.asked.append(form)
        if self.status != 200 or self.said is not None:
            return JSONResponse(self.said or {"error": "temporarily_unavailable"}, self.status)
        if not self._known(request):
            return JSONResponse({"error": "invalid_client"}, 401)
        try:
            keys = KeySet.import_key_set(self.subjects.jwks())  # type: ignore[arg-type]
            claims = jwt.decode(form["subject_token"], keys, algorithms=["ES256"]).claims
        except (JoseError, ValueError):
            return JSONResponse({"error": "invalid_request"}, 400)
        if form["grant_type"] != GRANT or claims["aud"] != self.url:
            return JSONResponse({"error": "invalid_request"}, 400)
        self.claims.append(claims)
        token = f"token-{len(self.issued)}-of-{claims['sub']}"
        self.issued.append(token)
        answer = {"access_token": token, "token_type": "Bearer", "issued_token_type": "urn:x"}
        return JSONResponse(answer if self.life_s is None else {**answer, "expires_in": self.life_s})

    def _known(self, request: Request) -> bool:
        scheme, _, both = request.headers.get("authorization", "").partition(" ")
        user, _, secret = b64decode(both).decode().partition(":")
        return scheme == "Basic" and (unquote_plus(user), unquote_plus(secret)) == ("gateway:1", self.secret)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        async with serving(Starlette(routes=[Route("/token", self.token, methods=["POST"])])) as origin:
            self.url = f"{origin}/token"
            yield self.url
