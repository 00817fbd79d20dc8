"""Where is an MCP server, and how is it reached?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.mcp.auth import Authorizer
from holdfast.upstreams.secrets.opening import Standing


@dataclass(frozen=True, slots=True)
class StdioTarget:
    """A program to start and talk to over its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What it gets beside the few variables every program needs; nothing else is inherited."""
    cwd: str | None = None
    secrets: Standing | None = None
    """Variables whose values hold secrets, filled in when it is started."""


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A server that is already running."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    transport: Literal["http", "sse"] = "http"
    """`sse` is the transport of 2024-11-05: one stream down, single posts up."""
    auth: Authorizer | None = None
    guard: Guard | None = None
    """Where it may be looked for; exactly at its url when left out."""
    secrets: Standing | None = None
    """Headers whose values hold secrets, filled in with every request."""


Target = StdioTarget | HttpTarget
