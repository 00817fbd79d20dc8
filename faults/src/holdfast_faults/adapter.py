"""What must the kit know about a gateway? Everything an adapter says, on one page.

An adapter says how to start the gateway in front of the kit's upstream, and how to read its answers. Faults,
clients and counting are the same for all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

Json = dict[str, Any]
KEY = "holdfast/key"
"""Where in `_meta` a call's key is."""
KEY_ARGUMENT = "idempotency_key"
"""Every tool of the upstream takes it, so every gateway passes it on."""


class Told(StrEnum):
    """What an answer means to the client that asked."""

    DONE = "done"
    UNKNOWN = "unknown"
    """It may have happened, and the gateway says that it does not know."""
    REFUSED = "refused"
    """A clear no, or not without a person: asking again changes nothing."""
    AGAIN = "again"
    """Not now: ask again with the same key."""
    ERROR = "error"
    """Something went wrong; clients try again a few times."""


class Unavailable(Exception):
    """The gateway cannot be had here; says why."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a gateway is to run, and what it is to front."""

    folder: Path
    """Its own; all replicas of one gateway share it."""
    upstream_url: str
    """The upstream over streamable HTTP."""
    upstream_command: Sequence[str]
    """The same upstream over stdio, for gateways that start their servers themselves."""
    tools: Mapping[str, str]
    """The upstream's tools: name to kind, one of `write`, `checked`, `confirmed`, `guarded`, `seen`."""
    home: Path | None = None
    """Where the gateway is installed, if somebody said so."""
    replica: int = 0


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How one process of the gateway is started; started again, it must find what it had."""

    command: Sequence[str | Path]
    """Empty: somebody else runs it, so it cannot be killed, stopped or restarted."""
    url: str
    """Its streamable HTTP endpoint."""
    environment: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request, such as a credential."""
    once: Callable[[], None] | None = None
    """Runs when the first replica listens for the first time, such as registering the upstream."""
    restart_store: Callable[[], None] | None = None
    """Restarts a store that is not part of the gateway's process."""


def plainly(result: Json) -> Told:
    """How any MCP result reads: it is an error or it is not."""
    return Told.ERROR if result.get("isError") else Told.DONE


@dataclass(frozen=True, kw_only=True)
class Adapter:
    name: str
    about: str
    keys: str
    """How it takes keys, in words for the report."""
    prepare: Callable[[Site], Launch]
    """Writes what the gateway needs into its folder. Raises Unavailable."""
    read: Callable[[Json], Told] = plainly
    replicas: int = 2
    """How many processes can serve the same upstream at once."""
    approves: bool = False
    """Whether it can hold a call for a person itself; then half of `no-elicitation` is about that."""
    preloads: bool = True
    """Whether its process heeds LD_PRELOAD, which is how clocks are moved."""
    unfit: Mapping[str, str] = field(default_factory=dict)
    """Scenarios that mean nothing here, and why."""
