"""Whose tokens open this door, and how is somebody told who came without one?

RFC 9728: a client that is refused is told where this document is, and finds in it where to sign in.
"""

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from holdfast.servers.answers import answer

if TYPE_CHECKING:
    from holdfast.gateway import Gateway

PATH = "/.well-known/oauth-protected-resource"
"""The resource's own path may follow it."""
MCP = "/mcp"


async def metadata(gateway: "Gateway", request: Request) -> Response:
    """GET /.well-known/oauth-protected-resource: whose tokens open this door"""
    auth = gateway.config.auth
    named = auth.resource or auth.audience or ""
    told: dict[str, Any] = {
        # Clients compare it with the address they came to, so it is one, whatever tokens call us.
        "resource": named if "://" in named else f"{base(gateway, request)}{MCP}",
        "resource_name": "Holdfast",
        "bearer_methods_supported": ["header"],
    }
    if auth.issuer is not None:
        told["authorization_servers"] = [auth.issuer]
        if auth.scopes:
            told["scopes_supported"] = list(auth.scopes)
    return answer(told)


def challenge(gateway: "Gateway", request: Request) -> str:
    """`WWW-Authenticate`: the same for whatever is wrong with a credential."""
    said = 'Bearer realm="holdfast"'
    if "authorization" in request.headers:
        said += ', error="invalid_token"'
    if gateway.config.auth.mode == "local":
        return said
    return f'{said}, resource_metadata="{base(gateway, request)}{PATH}{MCP}"'


def base(gateway: "Gateway", request: Request) -> str:
    return (gateway.config.base_url or f"{request.url.scheme}://{request.url.netloc}").rstrip("/")
