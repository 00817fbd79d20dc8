"""Builds what signs requests to an upstream, from its section of the configuration."""

from holdfast.config.upstream import McpServer
from holdfast.upstreams.mcp.oauth import OAuthAuthorizer
from holdfast.upstreams.mcp.oauth_client import Client, OpenUrl
from holdfast.upstreams.mcp.oauth_grant import TokenStore


def authorizer(
    name: str,
    server: McpServer,
    tokens: TokenStore,
    *,
    redirect_uri: str | None = None,
    open_url: OpenUrl | None = None,
) -> OAuthAuthorizer | None:
    """None where the upstream wants no sign-in. Without `open_url` nobody is there to be asked."""
    auth = server.auth
    if auth is None or server.url is None:
        return None
    client = Client(
        type=auth.type,
        client_id=auth.client_id,
        client_secret=auth.client_secret,
        client_metadata_url=auth.client_metadata_url,
        issuer=auth.issuer,
        scopes=auth.scopes,
        redirect_uri=redirect_uri or Client().redirect_uri,
    )
    return OAuthAuthorizer(name, server.url, tokens, client=client, shared=auth.shared, open_url=open_url)
