"""What do people see who open the gateway in a browser?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints

from holdfast.config.auth import Auth, Text
from holdfast.config.place import Fault
from holdfast.config.section import Section
from holdfast.model import defaults


class Console(Section):
    enabled: bool = True
    """Serve the console; where not, `/` is one page that says what this is."""
    session_hours: float = Field(default=defaults.SESSION_HOURS, gt=0, le=720)
    """Hours after which somebody signs in again, whatever they do."""
    idle_minutes: float = Field(default=defaults.IDLE_MINUTES, gt=0, le=10080)
    """Minutes without a request after which somebody signs in again."""
    client_id: Text | None = None
    """With `mode: jwt`: the console's own client at the issuer, one of `auth.in_person`."""
    story: Annotated[str, StringConstraints(min_length=1)] | None = None
    """A file with one call that is proposed at the first start, and what to say about it."""


def unfit(console: Console, auth: Auth) -> Iterator[Fault]:
    """What console and identity do not agree about."""
    if console.story is not None and auth.mode != "local":
        yield Fault(("console", "story"), "is told where people are known by name: needs 'auth.mode: local'")
    if console.client_id is None:
        return
    place = ("console", "client_id")
    if auth.mode != "jwt":
        yield Fault(place, "needs 'auth.mode: jwt'; leave it out, or name an issuer")
    elif console.client_id not in auth.in_person:
        yield Fault(place, f"people sign in through it: add {console.client_id!r} to 'auth.in_person'")
