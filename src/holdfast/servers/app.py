"""Which routes does the HTTP server have, and who stands before them?

Every route is in one of three tables. What is in `GOVERNED` and `STREAMED` is reached only by an
authenticated principal; what is in `PUBLIC` knows nothing worth protecting.
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.gateway import Gateway
from holdfast.servers import (
    audit,
    chains,
    channels,
    figures,
    grants,
    jobs,
    jsonrpc,
    metadata,
    operate,
    pages,
    policy,
    rest,
    standing,
    subject_keys,
    token,
    upstream_sessions,
)
from holdfast.servers.answers import TransportError, refused
from holdfast.servers.console import site
from holdfast.servers.front import Front, Way
from holdfast.servers.guard import Guard
from holdfast.servers.mcp import http
from holdfast.servers.offers import PATHS
from holdfast.servers.short import Short
from holdfast.servers.visit import Handler, Visit, authenticate

Page = Callable[[Gateway, Request], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]

GOVERNED: Mapping[str, Mapping[str, Handler]] = {
    "/v1/calls": {"POST": rest.propose},
    "/v1/calls/{id}": {"GET": rest.look_up},
    "/v1/calls/{id}/cancel": {"POST": operate.cancel},
    "/v1/calls/{id}/settle": {"POST": operate.settle},
    "/v1/tools": {"GET": rest.tools},
    "/v1/why": {"GET": rest.why, "POST": rest.why_with_arguments},
    "/v1/approvals": {"GET": operate.approvals},
    "/v1/approvals/{id}": {"GET": operate.approval},
    "/v1/approvals/{id}/decision": {"POST": operate.decide},
    "/v1/rules": {"GET": standing.rules, "POST": standing.propose_rule},
    "/v1/rules/proposals": {"GET": standing.proposals},
    "/v1/rules/{id}": {"GET": standing.rule, "DELETE": standing.revoke_rule},
    "/v1/rules/{id}/acceptance": {"POST": standing.accept_rule},
    "/v1/plans": {"GET": standing.plans, "POST": standing.propose_plan},
    "/v1/plans/{id}": {"GET": standing.plan, "DELETE": standing.revoke_plan},
    "/v1/chains": {"GET": chains.chains},
    "/v1/chains/{name}": {"GET": chains.chain},
    "/v1/chains/{name}/plan": {"POST": chains.plan},
    "/v1/chains/{name}/prove": {"POST": chains.prove},
    "/v1/chains/{name}/accept": {"POST": chains.accept},
    "/v1/runs": {"GET": chains.runs, "POST": chains.begin},
    "/v1/runs/{id}": {"GET": chains.run},
    "/v1/runs/{id}/resume": {"POST": chains.resume},
    "/v1/runs/{id}/choose": {"POST": chains.choose},
    "/v1/runs/{id}/abandon": {"POST": chains.abandon},
    "/v1/runs/{id}/cancel": {"POST": chains.cancel},
    "/v1/sessions": {"GET": upstream_sessions.sessions},
    "/v1/sessions/{id}": {"GET": upstream_sessions.session},
    "/v1/sessions/{id}/rollback": {"POST": upstream_sessions.rollback},
    "/v1/sessions/{id}/undo": {"POST": upstream_sessions.undo},
    "/v1/sessions/{id}/settle": {"POST": upstream_sessions.settle},
    "/v1/halts": {"GET": operate.halts, "POST": operate.halt},
    "/v1/halts/{target:path}": {"DELETE": operate.resume},  # a principal's name has a slash in it
    "/v1/grants": {"GET": grants.grants, "POST": grants.give},
    "/v1/grants/{id}": {"DELETE": grants.revoke},
    "/v1/elevations": {"POST": grants.elevate},
    "/v1/policy/diff": {"POST": policy.diff},
    "/v1/health": {"GET": figures.health},
    "/v1/alerts": {"GET": figures.alerts},
    "/v1/channels": {"GET": channels.channels},
    "/v1/costs": {"GET": figures.costs, "POST": figures.report},
    "/v1/audit": {"GET": audit.records},
    "/v1/audit/proof/{record}": {"GET": audit.proof},
    "/metrics": {"GET": operate.metrics},
    "/rpc": {"POST": jsonrpc.rpc},
    "/oauth/token": {"POST": token.exchange},
    "/oauth/revoke": {"POST": token.revoke},
}

PUBLIC: Mapping[str, Mapping[str, Page]] = {
    "/": {"GET": pages.home},
    "/health": {"GET": pages.health},
    "/ready": {"GET": pages.ready},
    "/openapi.json": {"GET": pages.openapi},
    "/v1/jobs/{word}": {"POST": jobs.called_back},  # whoever knows the word was told it by a submission
    metadata.PATH: {"GET": metadata.metadata},
    subject_keys.PATH: {"GET": subject_keys.subject_keys},
    metadata.PATH + http.PATH: {"GET": metadata.metadata},
}

STREAMED: Mapping[str, tuple[str, ...]] = {http.PATH: http.METHODS}
"""Governed too, by a door of its own."""


def build(gateway: Gateway, command: str = "holdfast", *, alone: bool = True, short: bool = True) -> Front:
    """The application of an open gateway; whoever opened the gateway closes it.

    MCP is served while `app.state.mcp.running()` is entered. `command` is how people here
    call the command line. `alone` where every request of a client comes to this process.
    Without `short` everything goes the general way, and is answered the same.
    """
    door = http.Door(gateway, command, alone=alone)
    governed = [
        _route(path, {m: _admitted(gateway, h) for m, h in hs.items()}) for path, hs in GOVERNED.items()
    ]
    public = [_route(path, {m: _opened(gateway, p) for m, p in ps.items()}) for path, ps in PUBLIC.items()]
    app = Front(
        gateway,
        _short_ways(gateway, door) if short else {},
        routes=[
            *governed,
            *site.routes(gateway),  # its first page stands before the one for everybody
            *public,
            Route(http.PATH, door, methods=list(STREAMED[http.PATH])),
        ],
        middleware=[Middleware(Guard, local=gateway.config.auth.mode == "local")],
        exception_handlers={404: _no_route, 405: _no_method},
    )
    app.state.mcp = door
    app.router.redirect_slashes = False  # a redirected POST is a second request, or a lost body
    return app


def _short_ways(gateway: Gateway, door: http.Door) -> Mapping[str, Way]:
    calls = Short(gateway)
    return dict(zip(PATHS, (door.short, calls.rest, calls.rpc), strict=True))


def _admitted(gateway: Gateway, handler: Handler) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await handler(Visit(gateway, request, await authenticate(gateway, request)))

    return endpoint


def _opened(gateway: Gateway, page: Page) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await page(gateway, request)

    return endpoint


def _route(path: str, endpoints: Mapping[str, Endpoint]) -> Route:
    async def endpoint(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, endpoint, methods=list(endpoints))


async def _no_route(request: Request, error: Exception) -> Response:
    then = "GET /openapi.json lists every route"
    return refused(TransportError(404, f"there is nothing at '{request.url.path[:200]}'", then))


async def _no_method(request: Request, error: Exception) -> Response:
    allowed = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    what = f"'{request.url.path[:200]}' does not take {request.method[:20]}"
    then = f"use {allowed.get('Allow', 'another method')}"
    return refused(TransportError(405, what, then, headers=allowed))
