"""How does an agent get a token of its own for what somebody lets it do? RFC 8693.

`POST /oauth/token`: a small token service. Whoever asks shows a credential of their own; what is handed on is
the subject's, and never more than the subject holds. Beside the members of the standard it takes `agent`,
`tools`, `resources`, `expires_in` and `narrow`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import Response

from holdfast.gateway.delegation import Subject, told
from holdfast.identity import Unauthenticated
from holdfast.identity.credential import bearer
from holdfast.identity.delegation import Undelegable, Wider, Wish, in_person
from holdfast.model.call import Principal
from holdfast.servers.answers import TransportError, answer
from holdfast.servers.metadata import MCP, base
from holdfast.servers.visit import Visit, read

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
TYPES = frozenset({ACCESS, "urn:ietf:params:oauth:token-type:jwt"})
MOST_BYTES = 64 << 10
"""Of a form: two long tokens and many patterns."""
MOST_MEMBERS = 64
FORM = "application/x-www-form-urlencoded"
ONCE = frozenset(
    (
        "grant_type subject_token subject_token_type actor_token actor_token_type requested_token_type"
        " scope tools resources agent expires_in narrow token"
    ).split()
)
TARGETS = frozenset({"resource", "audience"})
"""May be given several times: every place the token is for."""
NOT_STORED = {"Pragma": "no-cache"}


class OAuthError(Exception):
    """What a client of the token service is told; RFC 6749 5.2."""

    def __init__(self, code: str, text: str, **more: Any) -> None:
        super().__init__(text)
        self.body = {"error": code, "error_description": text, **more}


@dataclass(frozen=True, slots=True)
class Form:
    said: Mapping[str, str]
    targets: tuple[str, ...]

    def words(self, name: str) -> frozenset[str] | None:
        return frozenset(self.said[name].split(" ")) - {""} if name in self.said else None

    def seconds(self) -> float | None:
        text = self.said.get("expires_in")
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise OAuthError("invalid_request", "'expires_in' is a number of seconds")
        return float(text)

    def flag(self, name: str) -> bool:
        text = self.said.get(name, "false")
        if text not in ("true", "false"):
            raise OAuthError("invalid_request", f"'{name}' is 'true' or 'false'")
        return text == "true"


async def exchange(visit: Visit) -> Response:
    """POST /oauth/token"""
    wait_ms = visit.gateway.delegation.admit(visit.principal)
    if wait_ms is not None:
        said = {"Retry-After": str(max(1, ceil(wait_ms / 1000)))}
        raise TransportError(429, "too many requests at once", "wait, then ask again", headers=said)
    try:
        return await _exchanged(visit)
    except OAuthError as error:
        return answer(error.body, 400, NOT_STORED)


async def revoke(visit: Visit) -> Response:
    """POST /oauth/revoke (RFC 7009): whoever has a delegation can end it, and everything handed on from it"""
    try:
        presented = (await _form(visit)).said.get("token")
        if presented is None:
            raise OAuthError("invalid_request", "'token' says which; send it")
    except OAuthError as error:
        return answer(error.body, 400, NOT_STORED)
    try:
        found = await _shown_by(visit, presented)
        await visit.gateway.delegation.revoke(visit.principal, found)
    except OAuthError:
        pass  # it counts for nothing already, which is what was asked for
    return answer({}, 200, NOT_STORED)


async def _exchanged(visit: Visit) -> Response:
    form = await _form(visit)
    if form.said.get("grant_type") != GRANT:
        raise OAuthError("unsupported_grant_type", f"'grant_type' is '{GRANT}'")
    _check_types(form)
    _check_targets(visit, form)
    subject = await _subject(visit, form)
    actor = await _actor(visit, form, subject)
    wish = Wish(
        agent=form.said.get("agent"),
        scopes=form.words("scope"),
        tools=form.words("tools"),
        resources=form.words("resources"),
        life_s=form.seconds(),
        narrow=form.flag("narrow"),
    )
    try:
        issued = await visit.gateway.delegation.issue(visit.principal, subject, wish, actor)
    except Wider as error:
        raise OAuthError("invalid_scope", str(error), would_give=_shown(error.given)) from None
    except Undelegable as error:
        raise OAuthError("invalid_request", str(error)) from None
    body = {
        "access_token": issued.token,
        "issued_token_type": ACCESS,
        "token_type": "Bearer",
        "expires_in": issued.life_s,
        "scope": " ".join(sorted(issued.given.scopes)),
        "jti": issued.jti,
    }
    return answer(body | _bounds(issued.given), 200, NOT_STORED)


async def _form(visit: Visit) -> Form:
    kind = visit.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise OAuthError("invalid_request", f"send the members as '{FORM}'")
    body = await read(visit.request, MOST_BYTES)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MOST_MEMBERS,
        )
    except ValueError:
        raise OAuthError("invalid_request", "the form cannot be read") from None
    said: dict[str, str] = {}
    for name, value in pairs:
        if name in said and name in ONCE:
            raise OAuthError("invalid_request", f"'{name}' is given twice")
        if name in ONCE:
            said[name] = value  # what is not known is not looked at, as RFC 6749 wants
    return Form(said, tuple(value for name, value in pairs if name in TARGETS))


def _check_types(form: Form) -> None:
    said = form.said
    for token in ("subject_token", "actor_token"):
        if (token in said) != (f"{token}_type" in said):
            raise OAuthError("invalid_request", f"'{token}' and '{token}_type' belong together")
    for name in ("subject_token_type", "actor_token_type", "requested_token_type"):
        if said.get(name, ACCESS) not in TYPES:
            raise OAuthError("invalid_request", f"'{name}' is '{ACCESS}'")


def _check_targets(visit: Visit, form: Form) -> None:
    """A token from here is for here."""
    tokens, here = visit.gateway.delegation.tokens, base(visit.gateway, visit.request)
    known = {tokens.audience, tokens.issuer, here, f"{here}/", f"{here}{MCP}"}
    if any(target not in known for target in form.targets):
        raise OAuthError("invalid_target", f"a token from here is for '{here}' only")


async def _subject(visit: Visit, form: Form) -> Subject:
    if (presented := form.said.get("subject_token")) is not None:
        return await _shown_by(visit, presented)
    if visit.gateway.identity.mode != "local":
        raise OAuthError("invalid_request", "'subject_token' says for whom; send it")
    return await _caller(visit)


async def _caller(visit: Visit) -> Subject:
    presented = bearer(visit.request.headers)
    try:
        return await visit.gateway.delegation.subject(presented)
    except Unauthenticated:  # known by name, on this machine
        return Subject(visit.principal)


async def _actor(visit: Visit, form: Form, subject: Subject) -> Subject | None:
    """Who acts: who is shown to, else the agent that asks on behalf of somebody else."""
    if (presented := form.said.get("actor_token")) is not None:
        if "agent" in form.said:
            raise OAuthError("invalid_request", "'actor_token' says who acts; leave out 'agent'")
        return await _shown_by(visit, presented)
    caller = visit.principal
    if "agent" in form.said or in_person(caller) or caller.id == subject.principal.id:
        return None
    return await _caller(visit)


async def _shown_by(visit: Visit, presented: str) -> Subject:
    """One answer for whatever is wrong with a token."""
    try:
        found = await visit.gateway.delegation.subject(presented)
    except Unauthenticated:
        raise OAuthError("invalid_request", "this token is not accepted") from None
    if found.principal.tenant != visit.principal.tenant:
        raise OAuthError("invalid_request", "this token is not accepted")
    return found


def _shown(given: Principal) -> dict[str, Any]:
    return {"scope": " ".join(sorted(given.scopes)), "until": told(given)["until"]} | _bounds(given)


def _bounds(given: Principal) -> dict[str, str]:
    said = {"tools": given.bounds.tools, "resources": given.bounds.resources}
    return {name: " ".join(sorted(held)) for name, held in said.items() if held is not None}
