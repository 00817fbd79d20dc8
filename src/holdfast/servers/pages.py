"""What does anybody get to see without saying who they are?

Nothing here tells of tools, calls or people.
"""

import logging

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast.gateway import Gateway
from holdfast.servers.answers import ALWAYS, answer
from holdfast.servers.openapi import document

log = logging.getLogger(__name__)

HOME = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Holdfast</title>
<h1>Holdfast</h1>
<p>A governed gateway between agents and their tools. This is its HTTP door.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a> describes every route
<li><a href="/health">/health</a> and <a href="/ready">/ready</a>
<li><a href="https://github.com/holdfast-gateway/holdfast/tree/main/docs">documentation</a>
</ul>
<p>There is no console here: the configuration says <code>console.enabled: false</code>.
<code>holdfast --help</code> does its work.</p>
</html>
"""
NEXT = "this process is about to end; ask another one"
# A page without scripts needs no permission to run any.
HOME_HEADERS = {**ALWAYS, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


async def home(gateway: Gateway, request: Request) -> Response:
    """GET /, where there is no console"""
    return HTMLResponse(HOME, headers=HOME_HEADERS)


async def health(gateway: Gateway, request: Request) -> Response:
    """GET /health: the process is up and its loop turns"""
    return answer({"status": "ok"})


async def ready(gateway: Gateway, request: Request) -> Response:
    """GET /ready: calls can be taken now"""
    state = await gateway.ready()
    detail = state.pop("detail", None)  # may name paths and hosts: not for everybody
    if state["ready"] is True:
        return answer(state)
    if detail is not None:
        log.warning("not ready: the store is %s: %s", state["store"], detail)
    then = "try again later; the operator's log says what is missing"
    return answer({**state, "next": NEXT if state["draining"] else then}, 503)


async def openapi(gateway: Gateway, request: Request) -> Response:
    """GET /openapi.json"""
    return answer(document())
