"""With which keys does a token server check what this gateway says of its callers?"""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from holdfast.servers.answers import answer

if TYPE_CHECKING:
    from holdfast.gateway import Gateway

PATH = "/.well-known/jwks.json"


async def subject_keys(gateway: "Gateway", request: Request) -> Response:
    """GET /.well-known/jwks.json: the public keys behind subject tokens (RFC 8693)"""
    return answer({"keys": []} if gateway.subjects is None else gateway.subjects.jwks())
