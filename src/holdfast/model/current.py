"""Whose call is being served here?

Set around the life of a call, so that whatever is logged on its way, in any task or thread it starts, can be
told to belong to it, and what may not be shown of it is known. A reading made for a gate stands inside the
call it is made for.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.model.redaction import CREDENTIAL, Marked, marked_in

if TYPE_CHECKING:
    from holdfast.model.call import Call
    from holdfast.model.tool import Tool


@dataclass(frozen=True, slots=True)
class Stored:
    """Arguments of an earlier call, looked at again to find out what became of it."""

    tool: "Tool"
    arguments: Any


_SERVED: ContextVar[tuple["Call | Stored", ...]] = ContextVar("holdfast_served", default=())


class serving:
    """`with serving(call): ...`; a class, because a generator costs every call three times as much."""

    __slots__ = ("_token", "_what")

    def __init__(self, what: "Call | Stored") -> None:
        self._what = what

    def __enter__(self) -> None:
        self._token = _SERVED.set((*_SERVED.get(), self._what))

    def __exit__(self, *raised: object) -> None:
        try:  # noqa: SIM105  # `suppress` costs every call as much again
            _SERVED.reset(self._token)
        except ValueError:  # torn down from outside its task, whose context is gone with it
            pass


def served() -> "Call | None":
    """The innermost call under way here."""
    from holdfast.model.call import Call

    return next((one for one in reversed(_SERVED.get()) if isinstance(one, Call)), None)


def not_to_be_shown(*more: "Call | Stored") -> list[Marked]:
    """The marked values of everything that is served here."""
    return [marked for one in (*_SERVED.get(), *more) for marked in _marked(one)]


def _marked(one: "Call | Stored") -> Iterator[Marked]:
    tool: Tool | None = getattr(one, "tool", None)  # unset until `resolve` has passed
    if tool is None:
        return
    if isinstance(one, Stored):
        yield from marked_in(tool.input, one.arguments)
        return
    yield from ((text, CREDENTIAL) for text in one.injected)
    given = one.proposal.arguments
    yield from marked_in(tool.input, given if isinstance(given, str | bytes | dict) else dict(given))
    if isinstance(full := getattr(one, "arguments", None), dict):  # with defaults, once they are valid
        yield from marked_in(tool.input, full)
