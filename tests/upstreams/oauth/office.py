"""An authorization server on the SDK's routes, with people, clients and tokens that obey the test."""

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    IdentityAssertionParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

FAR = 4_000_000_000.0
"""The SDK's handlers look at the wall clock; the tests move a clock of their own."""


@dataclass
class Office:
    """Who signs in is `person`. A refresh token works once: used again, the whole sign-in is over."""

    person: str = "alice"
    life_s: int = 3600
    talkative: bool = False
    """Refuses codes, and repeats them while it does."""
    down: bool = False
    hold: asyncio.Event | None = None
    """Refreshes wait for it."""
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    refreshes: dict[str, RefreshToken] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    """What was requested here: path and, for tokens, the grant."""
    _number: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def app(self, url: str) -> ASGIApp:
        registration = ClientRegistrationOptions(
            enabled=True, valid_scopes=["tools", "admin"], default_scopes=["tools", "admin"]
        )
        routes = create_auth_routes(self, AnyHttpUrl(url), client_registration_options=registration)
        return _Counted(self, Starlette(routes=routes))

    def secrets(self) -> list[str]:
        """Everything that may be seen nowhere."""
        own = [client.client_secret for client in self.clients.values() if client.client_secret]
        return [*own, *self.codes, *self.tokens, *self.refreshes, *self.used]

    def revoke(self, person: str, *, for_good: bool = False) -> None:
        for kept in (self.tokens, self.refreshes) if for_good else (self.tokens,):
            for token in [t for t, what in kept.items() if what.subject == person]:
                del kept[token]

    def count(self, what: str) -> int:
        return self.asked.count(what)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = f"code-of-{self.person}-{next(self._number)}-{'c' * 40}"
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or ["tools"],
            expires_at=FAR,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=self.person,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.used.add(authorization_code.code)
        del self.codes[authorization_code.code]
        if self.talkative:
            raise TokenError("invalid_grant", f"the code '{authorization_code.code}' is not wanted")
        return self.issue(client, authorization_code)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        if self.hold is not None:
            await self.hold.wait()
        if refresh_token in self.used:
            self.revoke(self.person, for_good=True)
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refreshes.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.used.add(refresh_token.token)
        return self.issue(client, refresh_token)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)

    def issue(self, client: OAuthClientInformationFull, of: AuthorizationCode | RefreshToken) -> OAuthToken:
        number = next(self._number)
        access, refresh = f"access-of-{of.subject}-{number}", f"refresh-of-{of.subject}-{number}"
        about: dict[str, Any] = {
            "client_id": client.client_id,
            "resource": of.resource,
            "subject": of.subject,
        }
        self.tokens[access] = AccessToken(token=access, scopes=of.scopes, **about)
        self.refreshes[refresh] = RefreshToken(token=refresh, scopes=of.scopes, **about)
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=self.life_s,
            scope=" ".join(of.scopes),
        )


class _Counted:
    """Writes down what is asked, and answers 503 while the server is down."""

    def __init__(self, office: Office, app: ASGIApp) -> None:
        self._office = office
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._office.down:
            self._office.asked.append("down")
            await Response(status_code=503)(scope, receive, send)
            return
        if scope["path"] != "/token":
            self._office.asked.append(scope["path"])
            await self._app(scope, receive, send)
            return
        body = await receive()
        grant = next(part for part in body["body"].decode().split("&") if part.startswith("grant_type="))
        self._office.asked.append(grant.removeprefix("grant_type="))

        async def again() -> dict[str, object]:
            return dict(body)

        await self._app(scope, again, send)


def machine_office(office: Office, url: str, methods: list[str], resource: str) -> Starlette:
    """An authorization server for programs: client credentials only, `robot` with `sesame`."""

    async def metadata(request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": f"{url}/",
                "authorization_endpoint": f"{url}/authorize",
                "token_endpoint": f"{url}/token",
                "token_endpoint_auth_methods_supported": methods,
                "grant_types_supported": ["client_credentials"],
            }
        )

    async def token(request: Request) -> Response:
        form = await request.form()
        sent = "client_secret_basic" if "authorization" in request.headers else "client_secret_post"
        office.asked.append(f"{form['grant_type']} by {sent}")
        if sent not in methods or (sent == "client_secret_post" and form["client_secret"] != "sesame"):
            return JSONResponse({"error": "invalid_client"}, 401)
        access = f"access-of-robot-{len(office.asked)}"
        scopes = str(form.get("scope") or "tools").split()
        office.tokens[access] = AccessToken(
            token=access, client_id="robot", scopes=scopes, subject="robot", resource=resource
        )
        return JSONResponse({"access_token": access, "token_type": "bearer", "expires_in": office.life_s})

    async def claim(request: Request) -> Response:
        """Says that tokens for somebody else's server are given here."""
        return JSONResponse({"resource": request.query_params["for"], "authorization_servers": [f"{url}/"]})

    known = "/.well-known/oauth-authorization-server"
    routes = [Route(known, metadata), Route("/claim", claim), Route("/token", token, methods=["POST"])]
    return Starlette(routes=routes)
