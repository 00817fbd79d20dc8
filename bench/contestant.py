"""What is measured, and how does it want to be spoken to?"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    url: str
    pid: int
    """Whose CPU and memory count, with everything it starts."""
    headers: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    """What it puts before the names of tools."""
    own_upstream: str = ""
    """A part of the command line of servers it starts itself: they are upstreams, not the gateway."""
    database: int | None = None
    """The server of its store: not the gateway, and nobody who disturbs it either."""


Open = Callable[[Path, str], AbstractContextManager[Endpoint]]
"""Starts a gateway in a folder, in front of an upstream's URL. Raises Uninstalled or Unstarted."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    name: str
    open: Open | None
    """None: the upstream itself."""
    speech: str
    """One of `SPEECHES`."""
    tool: str = "read"
    peer: bool = False
    """Somebody else's gateway."""
    shared: bool = False
    """Whether all callers share one session of the older era: what suits it best."""
    keyed: bool = False
    """Whether every call names its operation."""
    cached: bool = False
    """Whether every call asks for the same, which is answered without the upstream."""
