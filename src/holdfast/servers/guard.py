"""May this request come in at all, and what leaves when something breaks?

Outermost of everything. In local mode nobody shows a credential, so a request must come from this machine
and must not be the work of a web page: a foreign Host is DNS rebinding, a foreign Origin another site's
script. Whatever breaks inside, the caller is told a number and nothing else.
"""

import logging
from ipaddress import ip_address
from secrets import token_hex
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.model.errors import AdmissionError, ConfigError, Forbidden, HoldfastError, NotFound, StoreError
from holdfast.servers.answers import TransportError, Unacceptable, observed, refused

log = logging.getLogger("holdfast.servers")

BROKEN = "something broke inside the gateway"


class Guard:
    def __init__(self, app: ASGIApp, *, local: bool) -> None:
        self.app = app
        self.local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if self.local:
                refuse_strangers(scope)
            if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
                raise TransportError(400, "this address has a NUL in it", "leave it out: nothing is named so")
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            log.debug("the client left before its request was complete")
        except Exception as error:
            if started:
                raise
            await response_to(error, scope["path"])(scope, receive, send)


def response_to(error: Exception, path: str) -> Response:
    """What the caller may know of an error."""
    match error:
        case Unacceptable():
            return observed(error.observation)
        case TransportError():
            return refused(error)
        case NotFound():
            return refused(TransportError(404, str(error), "check the id, and that it is yours"))
        case Forbidden():
            return refused(TransportError(403, str(error), "ask somebody who has the role"))
        case StoreError():
            return _broken(503, "the store is not available", "try again later", path, error)
        case HoldfastError() if not isinstance(error, ConfigError | AdmissionError):
            return refused(TransportError(409, str(error), "look at the current state, then decide again"))
        case _:
            return _broken(500, BROKEN, "do not repeat it blindly", path, error)


def incident(error: Exception, path: str) -> str:
    """Writes an error to the operator's log; the number is all that may leave."""
    number = token_hex(8)
    log.error("incident %s at %r", number, path, exc_info=error)
    return number


def _broken(status: int, what: str, then: str, path: str, error: Exception) -> Response:
    then = f"{then}; if it stays, give the operator the incident number"
    return refused(TransportError(status, what, then, incident=incident(error, path)))


def refuse_strangers(scope: Scope) -> None:
    headers, client = Headers(scope=scope), scope.get("client")
    host = headers.get("host", "")
    if client is not None and not is_loopback(client[0]):
        raise _stranger("it does not come from this machine")
    if not is_loopback(host_of(host)):
        raise _stranger("its Host is not a loopback address")
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
        raise _stranger("its Origin is another site")


def host_of(authority: str) -> str:
    """The host in `host:port`; an IPv6 address stands in brackets."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _stranger(why: str) -> TransportError:
    return TransportError(
        403,
        f"this request is refused: {why}",
        "call 127.0.0.1 directly, or serve with 'auth.mode: api_key' or 'jwt' to be reached from elsewhere",
    )
