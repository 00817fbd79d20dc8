"""How does somebody come in, leave, and become somebody else on their own machine?

By what the identity mode asks of every caller: a name on this machine, a key, a token. Whatever is wrong with
it is answered with one sentence.
"""

import re
from math import ceil
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.gateway import Gateway
from holdfast.gateway.sessions import NotAPerson
from holdfast.identity import Unauthenticated
from holdfast.identity.identity import SECRET, USER
from holdfast.identity.tries import TooMany
from holdfast.servers.console import session
from holdfast.servers.console.form import Form, read_form
from holdfast.servers.console.look import Look, outside
from holdfast.servers.console.security import HEADERS, refuse_other_sites

WRONG = "That is not accepted. Check what you entered; who has an approver secret needs it as well."
AGENT = "That is an agent's credential. The console is for people: sign in with your own."
UNDONE = "Your session has ended, so nothing was done. Sign in, then do it again."
MOST_FORM = 40_000
"""Bytes: a token with many groups has some thousand."""
MOST_FIELDS = 10
_PATH = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,2000}")
_CREDENTIAL = re.compile(r"[\x21-\x7e]{1,16384}")


class Choice(NamedTuple):
    """Somebody one can be on this machine."""

    name: str
    roles: tuple[str, ...]
    secret: bool


async def page(gateway: Gateway, request: Request) -> Response:
    """GET /sign-in"""
    then = ours(request.query_params.get("next", ""))
    if await session.find(gateway, request) is not None:
        return RedirectResponse(then, 303, HEADERS)
    wrong = UNDONE if "undone" in request.query_params else ""
    pending = await gateway.sessions.pending(session.shown(gateway, request))
    return shown(gateway, then, wrong, pending=pending)


async def act(gateway: Gateway, request: Request) -> Response:
    """POST /sign-in"""
    refuse_other_sites(request, gateway.config.base_url)
    form = await read_form(request, MOST_FORM, MOST_FIELDS)
    then = ours(form.get("next"))
    held = session.shown(gateway, request)
    pending = await gateway.sessions.pending(held) if form.get("step") == "secret" else None
    try:
        if pending is None:
            id = await gateway.sessions.begin(_headers(gateway, form), address(request))
        else:
            id = await gateway.sessions.complete(held, form.get("secret"), address(request))
    except TooMany as error:
        wait = max(1, ceil(error.wait_s))
        text = f"That was wrong too often. Wait {wait} s, then try again."
        return shown(gateway, then, text, 429, pending, {"Retry-After": str(wait)})
    except NotAPerson:
        return shown(gateway, then, AGENT, 403)
    except Unauthenticated:
        return shown(gateway, then, WRONG, 401, pending)
    await gateway.sessions.end(held)  # a session from before does not become another person's
    return session.give(gateway, request, RedirectResponse(then, 303, HEADERS), id)


async def switch(look: Look) -> Response:
    """POST /switch: become somebody else who needs no secret, on this machine"""
    gateway, form = look.gateway, await look.form()
    try:
        id = await gateway.sessions.begin(_headers(gateway, form), address(look.request))
    except Unauthenticated:
        return shown(gateway, ours(form.get("next")), WRONG, 401)
    await gateway.sessions.end(session.shown(gateway, look.request))
    return session.give(gateway, look.request, look.see_other(ours(form.get("next"))), id)


async def leave(look: Look) -> Response:
    """POST /sign-out"""
    await look.form()
    await look.gateway.sessions.end(session.shown(look.gateway, look.request))
    return session.forget(look.gateway, look.request, look.see_other("/sign-in"))


def shown(
    gateway: Gateway,
    then: str,
    wrong: str = "",
    status: int = 200,
    pending: str | None = None,
    more: dict[str, str] | None = None,
) -> Response:
    """The page itself. It says nothing of who exists but on this machine.

    `pending`: somebody whose credential is known, and who has yet to show their secret.
    """
    said = {"mode": gateway.identity.mode, "choices": choices(gateway), "wrong": wrong, "then": then}
    issuer = None if gateway.openid is None else gateway.openid.host
    return outside(gateway, "sign_in.html", status, more, **said, issuer=issuer, pending=pending)


def choices(gateway: Gateway) -> list[Choice]:
    """Whom one can be by name alone: in local mode, whoever is known."""
    identity = gateway.identity
    if identity.mode != "local":
        return []
    listed = [
        Choice(one.name, tuple(sorted(one.roles)), one.secret is not None) for one in identity.people.values()
    ]
    own = [] if identity.os_user in identity.people else [Choice(identity.os_user, (), False)]
    return [*listed, *own]


def ours(path: str) -> str:
    """Where to go afterwards: a path of this site, or the first page."""
    return path if _PATH.fullmatch(path) and not path.startswith(("/sign-", "/switch")) else "/"


def _headers(gateway: Gateway, form: Form) -> dict[str, str]:
    """What a program would send."""
    said = {}
    if gateway.identity.mode == "local":
        if person := form.get("person"):
            said[USER] = person
    elif _CREDENTIAL.fullmatch(credential := form.get("credential").strip()):
        said["authorization"] = f"Bearer {credential}"
    if secret := form.get("secret"):
        said[SECRET] = secret
    return said


def address(request: Request) -> str:
    return request.client.host if request.client is not None else ""
