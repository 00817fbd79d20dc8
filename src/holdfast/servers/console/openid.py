"""How does a browser go to the issuer and come back?

The way there is a link and the way back a redirect, so both are GET: neither does anything but to carry on
the sign-in that this very browser began.
"""

import logging

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.gateway import Gateway
from holdfast.gateway.openid import FLOW_S
from holdfast.gateway.sessions import NotAPerson
from holdfast.identity import Unauthenticated
from holdfast.model.errors import HoldfastError
from holdfast.servers.answers import TransportError
from holdfast.servers.console import session, sign_in
from holdfast.servers.console.look import outside
from holdfast.servers.console.security import HEADERS

log = logging.getLogger(__name__)

CALLBACK = "/sign-in/callback"
FLOW = "holdfast-flow"
AWAY = "The issuer cannot be asked now. Try again, or sign in with a credential you hold."


async def begin(gateway: Gateway, request: Request) -> Response:
    """GET /sign-in/openid"""
    then = sign_in.ours(request.query_params.get("next", ""))
    if gateway.openid is None:
        raise TransportError(404, "nobody signs in at an issuer here", "use the form")
    try:
        begun = await gateway.openid.begin(_back(gateway, request), then)
    except (HoldfastError, TimeoutError) as error:
        log.warning("the sign-in at the issuer cannot begin: %s", error)
        return sign_in.shown(gateway, then, AWAY, 503)
    response = RedirectResponse(begun.url, 303, HEADERS)
    secure = session.is_secure(gateway, request)
    # Lax: the way back begins at the issuer. It is worth nothing without what the issuer adds.
    response.set_cookie(
        _name(secure),
        begun.flow,
        max_age=int(FLOW_S),
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )
    return response


async def callback(gateway: Gateway, request: Request) -> Response:
    """GET /sign-in/callback"""
    response = await _signed_in(gateway, request)
    secure = session.is_secure(gateway, request)
    response.delete_cookie(_name(secure), path="/", secure=secure, httponly=True, samesite="lax")
    return response


async def _signed_in(gateway: Gateway, request: Request) -> Response:
    if gateway.openid is None:
        raise TransportError(404, "nobody signs in at an issuer here", "use the form")
    flow = request.cookies.get(_name(session.is_secure(gateway, request)), "")
    try:
        finished = await gateway.openid.finish(flow, request.query_params)
        shown = {"authorization": f"Bearer {finished.token}"}
        id = await gateway.sessions.begin(shown, sign_in.address(request), secret_later=True)
    except NotAPerson:
        return sign_in.shown(gateway, "/", sign_in.AGENT, 403)
    except (Unauthenticated, TimeoutError) as error:
        log.info("a sign-in at the issuer is refused: %s", error)
        return sign_in.shown(gateway, "/", sign_in.WRONG, 401)
    await gateway.sessions.end(session.shown(gateway, request))
    then = sign_in.ours(finished.then)
    return session.give(gateway, request, outside(gateway, "onward.html", then=then), id)


def _back(gateway: Gateway, request: Request) -> str:
    base = gateway.config.base_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
    return f"{base.rstrip('/')}{CALLBACK}"


def _name(secure: bool) -> str:
    return f"__Host-{FLOW}" if secure else FLOW
