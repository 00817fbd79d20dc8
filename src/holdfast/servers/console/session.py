"""Who is signed in? What the browser shows is one cookie; what it is worth today is asked of the gateway."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway import Gateway
from holdfast.gateway.sessions import Session
from holdfast.model.call import Principal

PLAIN, SECURE = "holdfast-session", "__Host-holdfast-session"

__all__ = ["Session", "find", "forget", "give", "is_secure", "shown"]


async def find(gateway: Gateway, request: Request) -> tuple[Principal, Session] | None:
    """Who sent this, by the cookie; None where nobody is signed in, or may be any more."""
    held = shown(gateway, request)
    return await gateway.sessions.find(held, active=not _by_itself(request)) if held else None


def _by_itself(request: Request) -> bool:
    """Whether a page that is open asks, and not a person: a stream, or a piece of itself again."""
    headers = request.headers
    stream = "text/event-stream" in headers.get("accept", "")
    return request.method == "GET" and (stream or headers.get("hx-request") == "true")


def shown(gateway: Gateway, request: Request) -> str:
    """What the cookie says; a cookie for a safe line counts on no other, and the other way round."""
    return request.cookies.get(SECURE if is_secure(gateway, request) else PLAIN, "")


def give(gateway: Gateway, request: Request, response: Response, id: str) -> Response:
    """Until the browser is closed; no script reads it, no other site's page sends it."""
    secure = is_secure(gateway, request)
    response.set_cookie(
        SECURE if secure else PLAIN, id, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


def forget(gateway: Gateway, request: Request, response: Response) -> Response:
    secure = is_secure(gateway, request)
    response.delete_cookie(
        SECURE if secure else PLAIN, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


def is_secure(gateway: Gateway, request: Request) -> bool:
    """Whether people reach this by https, here or at what stands before it."""
    return request.url.scheme == "https" or (gateway.config.base_url or "").startswith("https://")
