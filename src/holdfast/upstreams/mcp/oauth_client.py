"""Who is the gateway to an authorization server, and which of the SDK's OAuth clients speaks for it?"""

import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, cast

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from holdfast.upstreams.mcp.oauth_grant import Grant

Method = Literal["client_secret_basic", "client_secret_post"]
METHODS: tuple[Method, ...] = ("client_secret_basic", "client_secret_post")

Redirect = tuple[str, str | None] | tuple[str, str | None, str | None]
"""What a redirect brings back: code, state and, where the server names itself, issuer."""
OpenUrl = Callable[[str], Awaitable[Redirect]]
"""Sends a person to an address and waits for the redirect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The gateway as an OAuth client."""

    type: Literal["oauth", "client_credentials"] = "oauth"
    client_id: str | None = None
    """As registered there; without one the gateway registers itself."""
    client_secret: str | None = field(default=None, repr=False)
    client_metadata_url: str | None = None
    """A document that describes the gateway, for servers that read such documents."""
    issuer: str | None = None
    """The only server that may ever see id and secret; else the first one that did."""
    scopes: tuple[str, ...] = ()
    """Asked for beside what the upstream names."""
    redirect_uri: str = "http://127.0.0.1/callback"
    name: str = "Holdfast"


class _Pocket:
    """The SDK's storage for the length of one flow; what the flow leaves in it is kept by the authorizer."""

    def __init__(self, tokens: OAuthToken | None, client: OAuthClientInformationFull | None) -> None:
        self._tokens = tokens
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class _Person(OAuthClientProvider):
    """Signs a person in; where `renew` is set, a refresh token is tried before the person is asked.

    The SDK refreshes only what it knows to have ended. A server may end a token early: then a 401 is the
    first one hears of it.
    """

    renew = False
    configured = False

    async def _perform_authorization(self) -> httpx2.Request:
        if self.configured:
            _suit(self.context)
        if self.renew and self.context.can_refresh_token():
            return await self._refresh_token()
        return await super()._perform_authorization()


class _Machine(ClientCredentialsOAuthProvider):
    """The gateway's own account."""

    async def _perform_authorization(self) -> httpx2.Request:
        _suit(self.context)
        return await super()._perform_authorization()


def provider(
    server_url: str, client: Client, grant: Grant, open_url: OpenUrl | None, *, renew: bool = False
) -> OAuthClientProvider:
    """The SDK's client, knowing what the grant knows."""
    grant = grant.model_copy(deep=True)  # the SDK changes what it is given
    built = (
        _machine(server_url, client, grant)
        if client.type == "client_credentials"
        else _person(server_url, client, grant, open_url, renew)
    )
    context = built.context
    context.oauth_metadata = grant.server
    context.auth_server_url = grant.server_url
    context.protected_resource_metadata = grant.resource
    return built


def _machine(server_url: str, client: Client, grant: Grant) -> OAuthClientProvider:
    with warnings.catch_warnings():  # without an issuer the first server that is found is trusted, once
        warnings.simplefilter("ignore")
        return _Machine(
            server_url,
            _Pocket(grant.tokens, None),
            client.client_id or "",
            client.client_secret or "",
            token_endpoint_auth_method=METHODS[0],
            scope=" ".join(client.scopes) or None,
            issuer=client.issuer or grant.issuer,
        )


def _person(
    server_url: str, client: Client, grant: Grant, open_url: OpenUrl | None, renew: bool
) -> OAuthClientProvider:
    ask = None if open_url is None else _Asking(open_url)
    built = _Person(
        server_url,
        OAuthClientMetadata(
            client_name=client.name,
            redirect_uris=[AnyUrl(client.redirect_uri)],
            scope=(grant.tokens and grant.tokens.scope) or " ".join(client.scopes) or None,
        ),
        _Pocket(grant.tokens, _registered(client, grant)),
        redirect_handler=None if ask is None else ask.redirect,
        callback_handler=None if ask is None else ask.callback,
        client_metadata_url=client.client_metadata_url,
    )
    built.renew = renew
    built.configured = client.client_id is not None
    return built


class _Asking:
    """The SDK asks in two steps, we in one."""

    def __init__(self, open_url: OpenUrl) -> None:
        self._open_url = open_url
        self._answer: Redirect = ("", None)

    async def redirect(self, url: str) -> None:
        self._answer = await self._open_url(url)

    async def callback(self) -> AuthorizationCodeResult:
        code, state, *rest = self._answer
        return AuthorizationCodeResult(code=code, state=state, iss=rest[0] if rest else None)


def _registered(client: Client, grant: Grant) -> OAuthClientInformationFull | None:
    """What the configuration says wins, so that a new secret holds from the next start on."""
    if client.client_id is None:
        return grant.client
    return OAuthClientInformationFull(
        client_id=client.client_id,
        client_secret=client.client_secret,
        redirect_uris=[AnyUrl(client.redirect_uri)],
        token_endpoint_auth_method=METHODS[0] if client.client_secret else "none",
        issuer=client.issuer or grant.issuer,
    )


def _suit(context: OAuthContext) -> None:
    """A configured secret goes the way the server takes it; the SDK chooses only for those it registers."""
    client, server = context.client_info, context.oauth_metadata
    offered = None if server is None else server.token_endpoint_auth_methods_supported
    if client is None or client.client_secret is None or not offered:
        return
    if client.token_endpoint_auth_method not in offered:
        taken = (method for method in METHODS if method in offered)
        client.token_endpoint_auth_method = cast(str, next(taken, client.token_endpoint_auth_method))
