"""An issuer of tokens in this process: what it publishes, what it signs, and how often it was asked."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import orjson
from joserfc import jws
from joserfc.jwk import ECKey, OKPKey, RSAKey

from holdfast.config import parse
from holdfast.identity import Identity, build
from holdfast.model.errors import HoldfastError

ISSUER = "https://login.example.com/t1"
AUDIENCE = "https://gateway.example.com/mcp"
NOW = 1_900_000_000.0

RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed"})


class Issuer:
    """Publishes its keys, and knows what time it is."""

    def __init__(self) -> None:
        self.now = NOW
        self.keys: list[Any] = [RSA, EC, ED]
        self.asked: list[str] = []
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.documents: dict[str, Any] = {
            f"{ISSUER}/.well-known/openid-configuration": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks"}
        }

    async def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        await self.gate.wait()
        if self.away:
            raise HoldfastError("nobody answers")
        if url.endswith("/jwks"):
            return orjson.dumps({"keys": [key.as_dict(private=False) for key in self.keys]})
        if url not in self.documents:
            raise HoldfastError("the server answered with HTTP status 404")
        return orjson.dumps(self.documents[url])

    def claims(self, **more: Any) -> dict[str, Any]:
        said = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "alice",
            "client_id": "notebook",
            "scope": "orders:read mail:send",
            "iat": int(self.now),
            "exp": int(self.now) + 600,
            "jti": "t-1",
        }
        return {name: value for name, value in (said | more).items() if value is not None}

    def token(self, key: Any = EC, header: Mapping[str, Any] | None = None, **more: Any) -> str:
        kind = {"RSA": "RS256", "EC": "ES256", "OKP": "Ed25519"}[key.key_type]
        told = {"alg": kind, "kid": key.kid, "typ": "at+jwt"} | dict(header or {})
        told = {name: value for name, value in told.items() if value is not None}
        return signed(told, self.claims(**more), key)

    def identity(self, **auth: Any) -> Identity:
        """A gateway's, before it has looked at anything."""
        tree = {
            "mode": "jwt",
            "issuer": ISSUER,
            "audience": AUDIENCE,
            "people": {"alice": {"scopes": ["orders:*"], "roles": ["operator"], "trust": 70}},
            **auth,
        }
        return build(parse({"auth": tree}).auth.model_dump(), now=lambda: self.now, fetch=self.fetch)

    async def ready(self, **auth: Any) -> Identity:
        identity = self.identity(**auth)
        assert identity.issuer_keys is not None
        assert await identity.issuer_keys.look()
        self.asked.clear()
        return identity


def signed(header: Mapping[str, Any], claims: Mapping[str, Any], key: Any) -> str:
    """Whatever somebody with this key could sign, sensible or not."""
    body = f"{coded(header)}.{coded(claims)}"
    return f"{body}.{coded(jws.JWSRegistry.algorithms[header['alg']].sign(body.encode(), key))}"


def coded(value: Any) -> str:
    raw = value if isinstance(value, bytes) else orjson.dumps(value)
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
