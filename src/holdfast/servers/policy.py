"""How are policies tried on past calls over HTTP?"""

from typing import Any

from starlette.responses import Response

from holdfast.gateway.auditing import DAY_S
from holdfast.gateway.diff import Wish
from holdfast.model.errors import ConfigError, HoldfastError
from holdfast.model.fields import FieldError
from holdfast.policy import Bundle
from holdfast.policy.bundle import NAME, RESERVED
from holdfast.servers.answers import answer
from holdfast.servers.members import FLAG, SECONDS, WHOLE, Member, Members, choice, text
from holdfast.servers.visit import Visit

FILES = Member(
    "an object of the texts of '.cedar' files by their names",
    lambda value: isinstance(value, dict) and bool(value) and all(isinstance(t, str) for t in value.values()),
)
DIFF: Members = {
    "version": text(),
    "name": text(),
    "description": text(),
    "files": FILES,
    "since_s": SECONDS,
    "tool": text(),
    "principal": text(),
    "tenant": text(),
    "against": choice("then", "active", required=False),
    "examples": WHOLE,
    "accept": FLAG,
    "note": text(),
}
_WISHES = ("since_s", "tool", "principal", "tenant", "examples")


async def diff(visit: Visit) -> Response:
    """POST /v1/policy/diff"""
    said = await visit.members(DIFF)
    if ("version" in said) == ("files" in said):
        why = "name a promoted 'version', or give 'files'"
        visit.refuse([FieldError("", "'version' or 'files'", "both" if "files" in said else "neither", why)])
    history = visit.gateway.history
    asked: dict[str, Any] = {"since_s": visit.gateway.config.policy_review.days * DAY_S}
    asked |= {name: said[name] for name in _WISHES if name in said}
    wish = Wish(**asked, active=said.get("against") == "active")
    try:
        made = await history.diff(visit.principal, await _bundle(visit, said), wish)
    except ConfigError as error:  # what is wrong with the bundle is the caller's to know
        raise HoldfastError(str(error)) from None
    accepted = bool(said.get("accept"))
    if accepted:
        await history.accept(visit.principal, made, said.get("note", ""))
    return answer({**made.to_dict(), "accepted": accepted})


async def _bundle(visit: Visit, said: dict[str, Any]) -> Bundle:
    if "version" in said:
        return await visit.gateway.history.find(said["version"])
    name = said.get("name", "bundle")
    if not NAME.fullmatch(name) or name in RESERVED:
        visit.refuse(
            [FieldError("/name", "lower-case letters, digits and '-'", "another name", "no such name")]
        )
    return Bundle(name, said["files"], said.get("description", ""))
