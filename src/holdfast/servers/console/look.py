"""What does a page know: who looks, at which gateway, and how it answers?"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.gateway import Gateway
from holdfast.model.call import Principal
from holdfast.servers.answers import TransportError
from holdfast.servers.console.form import Form, read_form
from holdfast.servers.console.security import HEADERS, same_token
from holdfast.servers.console.session import Session
from holdfast.servers.console.words import DONE, NAVIGATION
from holdfast.servers.console.writing import rendered

MOST_FORM = 100_000
"""Bytes of a form; notes are short, a policy that is tried out is not."""
MOST_FIELDS = 1000


@dataclass(frozen=True, slots=True)
class Look:
    """One request of somebody who is signed in."""

    gateway: Gateway
    request: Request
    principal: Principal
    session: Session

    async def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """A whole page, with the ways to the others around it."""
        waiting = context.get("waiting")
        if waiting is None:
            waiting = await self.gateway.inbox.waiting(self.principal)
        around = {
            "navigation": NAVIGATION,
            "path": self.request.url.path,
            "me": self.principal,
            "waiting": waiting,
            "done": DONE.get(self.request.query_params.get("done", "")),
        }
        return self.partial(template, status, **{**around, **context})

    def partial(self, template: str, status: int = 200, **context: Any) -> Response:
        """A piece of a page, for one that is open already."""
        now = self.gateway.identity.now()
        text = rendered(template, {"csrf": self.session.token, "now": now, **context})
        return Response(text, status, HEADERS, "text/html; charset=utf-8")

    async def form(self) -> Form:
        """What was sent, if it was sent by one of our own pages; raises TransportError."""
        known = getattr(self.request.state, "form", None)
        if known is not None:
            return cast(Form, known)
        form = await read_form(self.request, MOST_FORM, MOST_FIELDS)
        if not same_token(self.session.token, form.get("csrf", "") or self.request.headers.get("x-csrf", "")):
            raise TransportError(
                403, "this form is not of this session", "open the page again, then decide again"
            )
        self.request.state.form = form
        return form

    @property
    def partly(self) -> bool:
        """Whether a page that is open asks for a piece of itself."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters that say something."""
        return {name: value for name, value in self.request.query_params.items() if value.strip()}

    def see_other(self, path: str, done: str = "") -> Response:
        """After an act: look at what became of it. A reload repeats nothing."""
        mark = "&" if "?" in path else "?"
        return RedirectResponse(f"{path}{mark}done={done}" if done else path, 303, HEADERS)


def outside(
    gateway: Gateway,
    template: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """A page for somebody who is not signed in."""
    around = {"navigation": (), "path": "", "me": None, "waiting": 0, "done": None, "csrf": ""}
    text = rendered(template, {**around, "now": gateway.identity.now(), **context})
    return Response(text, status, {**HEADERS, **(headers or {})}, "text/html; charset=utf-8")


Handler = Callable[[Look], Awaitable[Response]]
