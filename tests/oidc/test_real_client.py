"""Does a client that was told nothing but an address find where to sign its person in, and get through?"""

from typing import Any

import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.oidc.provider import BACK, Provider
from tests.requirements import requirement
from tests.servers.desk import Desk
from tests.servers.mcp.conftest import text
from tests.servers.serving import serving


class Later:
    """An application that is known only once its address is."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class Notebook:
    """What the client keeps, and the browser it opens."""

    def __init__(self, issuer: Provider) -> None:
        self._issuer = issuer
        self.tokens: OAuthToken | None = None
        self.sent_to: list[str] = []

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return OAuthClientInformationFull.model_validate(
            {
                "client_id": "notebook",
                "client_secret": "notebook-secret",
                "redirect_uris": [BACK],
                "token_endpoint_auth_method": "client_secret_basic",
                "issuer": self._issuer.url,
            }
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError("it is registered already")

    async def open_browser(self, url: str) -> None:
        self.sent_to.append(url)

    async def come_back(self) -> AuthorizationCodeResult:
        told = await self._issuer.browsed("alice", self.sent_to[-1])
        return AuthorizationCodeResult(code=told["code"], state=told["state"], iss=told["iss"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@requirement("AUT-1", "PRO-1")
async def test_an_mcp_client_signs_its_person_in_by_itself(
    config: dict[str, Any], issuer: Provider, desk: Desk, mode: Any
) -> None:
    later, notebook = Later(), Notebook(issuer)
    async with serving(later) as served:
        url = f"{served.url}/mcp"
        config["auth"] |= {"audience": url, "scopes": ["notes:read"]}
        async with Gateway.open(config) as gateway:
            app = later.app = build(gateway)
            signing_in = OAuthClientProvider(
                url,
                OAuthClientMetadata.model_validate({"redirect_uris": [BACK]}),
                notebook,
                redirect_handler=notebook.open_browser,
                callback_handler=notebook.come_back,
            )
            async with (
                app.state.mcp.running(),
                create_mcp_http_client(auth=signing_in) as http,
                Client(streamable_http_client(url, http_client=http), mode=mode, cache=None) as client,
            ):
                result = await client.call_tool("desk__count", {})
    assert (result.is_error, text(result)) == (False, "0")
    assert len(notebook.sent_to) == 1
    assert "scope=notes%3Aread" in notebook.sent_to[0]
