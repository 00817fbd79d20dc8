"""A real OpenID provider in a process of its own, and how people and programs get tokens from it."""

import hashlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import aiohttp
from joserfc.jwk import JWKRegistry

from tests.conformance.started import started
from tests.npm.installed import NODE, packages

HERE = Path(__file__).parent
BACK = "http://127.0.0.1/back"
GATEWAY = "https://gateway.example.com/mcp"
"""The resource tokens are meant for; signed with ES256."""
ELSEWHERE = "https://elsewhere.example.com/mcp"
IN_RSA = "https://gateway.example.com/rs256"
SCOPES = "notes:read notes:write mail:send"
MOST_STEPS = 10


@dataclass(frozen=True)
class Provider:
    url: str

    async def of_program(self, client: str = "notebook", scope: str = SCOPES, resource: str = GATEWAY) -> str:
        """A token of a client that acts for itself."""
        async with aiohttp.ClientSession() as http:
            asked = {"grant_type": "client_credentials", "scope": scope, "resource": resource}
            return str((await self._token(http, client, asked))["access_token"])

    async def of_person(
        self, person: str, client: str = "notebook", scope: str = SCOPES, resource: str = GATEWAY
    ) -> str:
        """A token a client got after somebody signed in."""
        return str((await self.signed_in(person, client, scope, resource))["access_token"])

    async def signed_in(
        self, person: str, client: str = "notebook", scope: str = SCOPES, resource: str = GATEWAY
    ) -> dict[str, Any]:
        """All a client gets for a code: it sends a browser, which comes back."""
        secret = token_urlsafe(48)
        proof = urlsafe_b64encode(hashlib.sha256(secret.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "client_id": client,
            "response_type": "code",
            "scope": f"openid {scope}",
            "resource": resource,
            "redirect_uri": BACK,
            "code_challenge": proof,
            "code_challenge_method": "S256",
            "login_hint": person,
        }
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            code = (await self._browsed(http, f"{self.url}/auth", asked))["code"]
            given = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK}
            return await self._token(http, client, {**given, "code_verifier": secret, "resource": resource})

    async def rotate(self, *, keep: bool) -> None:
        """Sign with new keys from now on; the old ones are published on only if they are kept."""
        url = f"{self.url}/control/rotate{'?keep=1' if keep else ''}"
        async with aiohttp.ClientSession() as http, http.post(url) as answer:
            assert answer.status == 200

    async def key(self, kind: str) -> Any:
        """The private key it signs with, by its kind."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/control/keys") as answer:
            keys = (await answer.json(content_type=None))["keys"]
        return next(JWKRegistry.import_key(key) for key in keys if key["kty"] == kind)

    async def browsed(self, person: str, url: str, back: str = BACK) -> dict[str, str]:
        """What a browser brings back from where a client sent it, once somebody has signed in there."""
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            return await self._browsed(http, f"{url}&login_hint={person}", {}, back)

    async def _browsed(
        self, http: aiohttp.ClientSession, url: str, params: dict[str, str], back: str = BACK
    ) -> dict[str, str]:
        for _ in range(MOST_STEPS):
            async with http.get(url, params=params, allow_redirects=False) as answer:
                assert answer.status == 303, await answer.text()
                url, params = urljoin(self.url, answer.headers["location"]), {}
            if url.startswith(back):
                return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        raise AssertionError(f"the sign-in did not come back, but went to {url}")

    async def _token(self, http: aiohttp.ClientSession, client: str, asked: dict[str, str]) -> dict[str, Any]:
        known = b64encode(f"{client}:{client}-secret".encode()).decode()
        headers = {"authorization": f"Basic {known}"}
        async with http.post(f"{self.url}/token", data=asked, headers=headers) as answer:
            said: dict[str, Any] = await answer.json()
            assert answer.status == 200, said
            return said


@contextmanager
def provider(log: Path) -> Iterator[Provider]:
    """Runs while the block does."""
    module = packages() / "oidc-provider" / "lib" / "index.js"
    command = (str(NODE), str(HERE / "provider.mjs"), str(module))
    with started(command, r"^issuer (\S+)$", log) as url:
        yield Provider(url)
