"""What does the address of a page ask for, and how is another such address written?"""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from holdfast.model.view import Wanted
from holdfast.servers.answers import TransportError

PAGE = 50
"""Calls on one page."""
LONGEST = 200
"""Characters of one filter; names are shorter."""
STATUSES = ("done", "partial", "held", "refused", "failed", "unknown", "preview", "running")
FILTERS = (
    "tool",
    "upstream",
    "status",
    "caller",
    "agent",
    "code",
    "effect",
    "task",
    "since",
    "until",
    "alarmed",
)


def address(path: str, said: Mapping[str, str], **other: str | None) -> str:
    """A page with what was asked for before, but for what is asked otherwise now; None leaves it out."""
    members = {**{name: said[name] for name in said if name != "done"}, **other}
    query = urlencode({name: value for name, value in members.items() if value})
    return f"{path}?{query}" if query else path


def wanted(said: Mapping[str, str], limit: int = PAGE) -> Wanted:
    """Which calls a query asks for; raises TransportError for a time that is none."""
    tool = said.get("tool", "")[:LONGEST].strip()
    if not tool and (upstream := said.get("upstream", "").strip()):
        tool = f"{upstream[:LONGEST]}.*"
    return Wanted(
        tool=tool or None,
        caller=_text(said, "caller"),
        agent=_text(said, "agent"),
        status=_text(said, "status"),
        code=_code(said),
        effect=_text(said, "effect"),
        task=_text(said, "task"),
        alarmed=bool(said.get("alarmed")),
        since=moment(said, "since"),
        until=moment(said, "until"),
        before=_text(said, "before"),
        limit=limit,
    )


def moment(said: Mapping[str, str], name: str) -> float | None:
    """A time in UTC, as a browser writes it; None where none is named."""
    text = said.get(name, "").strip()
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise TransportError(
            400, f"'{text[:40]}' is no time", "write it as 2026-01-31T08:00, in UTC"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _text(said: Mapping[str, str], name: str) -> str | None:
    return said.get(name, "").strip()[:LONGEST] or None


def _code(said: Mapping[str, str]) -> str | None:
    code = _text(said, "code")
    return None if code is None else code.upper()
