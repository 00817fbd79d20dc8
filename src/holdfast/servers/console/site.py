"""Where are the console's pages, and who gets to see them?

What is in `PAGES` is seen by whoever is signed in, and by nobody else: whoever is not is shown the way in.
Whatever goes wrong is said on a page, in the words a program would get.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdfast.gateway import Gateway
from holdfast.servers.console import assets, openid, session, sign_in, story
from holdfast.servers.console.look import Handler, Look, outside
from holdfast.servers.console.pages import (
    approval,
    audit,
    call,
    catalog,
    chains,
    costs,
    inbox,
    live,
    plans,
    policy,
    rules,
    run_events,
    unknown,
    upstreams,
)
from holdfast.servers.console.security import HEADERS, refuse_other_sites
from holdfast.servers.guard import response_to

Door = Callable[[Gateway, Request], Awaitable[Response]]

PAGES: Mapping[str, Mapping[str, Handler]] = {
    "/": {"GET": inbox.page},
    "/inbox/events": {"GET": inbox.events},
    "/approvals/several": {"POST": inbox.several},
    "/approvals/{id}": {"GET": approval.page},
    "/approvals/{id}/decision": {"POST": approval.decide},
    "/rules": {"GET": rules.page},
    "/rules/ask": {"POST": rules.ask},
    "/rules/{id}/revoke": {"POST": rules.revoke},
    "/plans/{id}": {"GET": plans.page},
    "/plans/{id}/revoke": {"POST": plans.revoke},
    "/live": {"GET": live.page},
    "/live/events": {"GET": live.events},
    "/live/traffic.json": {"GET": live.traffic},
    "/calls/{id}": {"GET": call.page},
    "/calls/{id}/cancel": {"POST": call.cancel},
    "/calls/{id}/settle": {"POST": call.settle},
    "/calls/{id}/rollback": {"POST": call.roll_back},
    "/chains": {"GET": chains.page},
    "/chains/{run}": {"GET": chains.run},
    "/chains/{run}/events": {"GET": run_events.events},
    "/chains/{run}/resume": {"POST": chains.resume},
    "/chains/{run}/choose": {"POST": chains.choose},
    "/chains/{run}/abandon": {"POST": chains.abandon},
    "/chains/{run}/cancel": {"POST": chains.cancel},
    "/catalog": {"GET": catalog.page},
    "/catalog/accept": {"POST": catalog.accept},
    "/catalog/{tool}": {"GET": catalog.tool},
    "/catalog/{tool}/why": {"POST": catalog.why},
    "/policy": {"GET": policy.page},
    "/policy/try": {"POST": policy.try_out},
    "/policy/promote": {"POST": policy.promote},
    "/policy/rollback": {"POST": policy.rollback},
    "/audit": {"GET": audit.page},
    "/audit/export": {"POST": audit.export},
    "/audit/{record}": {"GET": audit.record},
    "/costs": {"GET": costs.page},
    "/upstreams": {"GET": upstreams.page},
    "/upstreams/halt": {"POST": upstreams.halt},
    "/upstreams/resume": {"POST": upstreams.resume},
    "/upstreams/{name}/restart": {"POST": upstreams.restart},
    "/unknown": {"GET": unknown.page},
    "/switch": {"POST": sign_in.switch},
    "/sign-out": {"POST": sign_in.leave},
    "/story": {"POST": story.again},
}
"""For whoever is signed in. A form is read before any of them is asked: whose it is not, it does nothing."""
DOORS: Mapping[str, Mapping[str, Door]] = {
    "/sign-in": {"GET": sign_in.page, "POST": sign_in.act},
    "/sign-in/openid": {"GET": openid.begin},
    openid.CALLBACK: {"GET": openid.callback},
}
"""For whoever is not, yet."""


def routes(gateway: Gateway) -> list[Route]:
    """None where the configuration wants no console."""
    if not gateway.config.console.enabled:
        return []
    pages = [_route(gateway, path, handlers) for path, handlers in PAGES.items()]
    doors = [_door(gateway, path, handlers) for path, handlers in DOORS.items()]
    return [*pages, *doors, Route("/assets/{digest}/{name:path}", assets.asset, methods=["GET"])]


def _route(gateway: Gateway, path: str, handlers: Mapping[str, Handler]) -> Route:
    async def endpoint(request: Request) -> Response:
        known = await session.find(gateway, request)
        if known is None:
            return _way_in(gateway, request)
        look = Look(gateway, request, *known)
        try:
            if request.method == "POST":
                refuse_other_sites(request, gateway.config.base_url)
                await look.form()
            return await handlers[_asked(request)](look)
        except Exception as error:
            return await _said(look, error)

    return Route(path, endpoint, methods=list(handlers))


def _door(gateway: Gateway, path: str, handlers: Mapping[str, Door]) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            return await handlers[_asked(request)](gateway, request)
        except Exception as error:
            status, said = _words(error, path)
            return outside(gateway, "error.html", status, **said)

    return Route(path, endpoint, methods=list(handlers))


def _asked(request: Request) -> str:
    return "GET" if request.method == "HEAD" else request.method


def _way_in(gateway: Gateway, request: Request) -> Response:
    """To the sign-in, and from there back to the page that was asked for."""
    if request.headers.get("hx-request") == "true":  # a piece of a page cannot be a sign-in
        return Response(status_code=401, headers={**HEADERS, "HX-Redirect": "/sign-in"})
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    acts = request.method not in ("GET", "HEAD")
    back = sign_in.ours(_page_of(request.url.path) if acts else asked)
    if _comes_from_elsewhere(request):
        return outside(gateway, "onward.html", then=back)
    said = [f"next={quote(back, safe='/')}"] if back != "/" else []
    then = "&".join([*said, "undone=1"] if acts and request.url.path != "/sign-out" else said)
    return RedirectResponse(f"/sign-in?{then}" if then else "/sign-in", 303, HEADERS)


def _page_of(path: str) -> str:
    """Where the form stands that is sent to a path."""
    page, _, act = path.rpartition("/")
    return page if act in ("decision", "cancel", "settle", "rollback") else "/"


def _comes_from_elsewhere(request: Request) -> bool:
    """A link in a mail: the browser shows no cookie of ours until a page of ours leads on."""
    said = request.headers
    crossed = said.get("sec-fetch-site") in ("cross-site", "same-site")
    return crossed and said.get("sec-fetch-mode") == "navigate" and request.method == "GET"


async def _said(look: Look, error: Exception) -> Response:
    status, said = _words(error, look.request.url.path)
    return await look.page("error.html", status, **said)


def _words(error: Exception, path: str) -> tuple[int, dict[str, Any]]:
    """What a program would be told as JSON, as a page."""
    answer = response_to(error, path)
    said = orjson.loads(bytes(answer.body))
    incident = f" Incident {said['incident']}." if "incident" in said else ""
    text = str(said.get("error") or said.get("message") or "this cannot be done")
    then = str(said.get("next") or "") + incident
    title = {403: "Not allowed", 404: "Not found", 409: "Not now"}.get(
        answer.status_code, "That did not work"
    )
    shown = {"title": title, "text": text[:1].upper() + text[1:], "then": then[:1].upper() + then[1:]}
    return answer.status_code, shown
