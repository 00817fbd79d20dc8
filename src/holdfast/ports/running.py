"""Where do tools really run, and with which secrets?"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

from holdfast.model.contract import Credential
from holdfast.model.peer import Peer
from holdfast.model.secret import Secret
from holdfast.model.tool import Tool
from holdfast.model.value import value


class SecretProvider(Protocol):
    """Where one secret is kept."""

    async def read(self) -> Secret:
        """As it is there now. Raises `SecretError`, which never quotes it."""
        ...

    async def close(self) -> None: ...


class Credentials(Protocol):
    """The gateway's own secrets, by the names the configuration gives them; AUT-3."""

    def tenant(self, name: str) -> str | None:
        """Whose it is alone; None where every tenant's calls may use it."""
        ...

    async def take(self, name: str, tenant: str) -> Secret:
        """One that has not ended; raises `NoEffect` where this tenant cannot have it now."""
        ...

    async def renew(self, name: str, refused: Secret) -> Secret | None:
        """Somebody refused it: another one, if reading it anew gives another one."""
        ...

    async def close(self) -> None: ...


@value(kw_only=True)
class Injected:
    """A secret that goes with an attempt, and where."""

    credential: Credential
    secret: Secret
    renew: Callable[[Secret], Awaitable[Secret | None]] = field(repr=False)
    """Another one in place of one that was refused, if there is any."""

    @property
    def text(self) -> str:
        return self.credential.prefix + self.secret.text


@value(kw_only=True)
class Attempt:
    """One try at an upstream."""

    tool: Tool
    arguments: Mapping[str, Any]
    key: str | None
    tenant: str
    call_id: str
    trace_id: str
    deadline_s: float
    number: int
    traceparent: str | None = None
    """W3C trace context for the upstream; `tracestate` goes with it."""
    tracestate: str | None = None
    principal: str = ""
    """Whose call it is, for upstreams that are reached in somebody's name."""
    peer: Peer | None = None
    """The client that waits. Time it takes to answer is not counted against the deadline."""
    credentials: tuple[Injected, ...] = ()
    """What the contract says goes with it. Nothing of it may come back in an answer or an error."""


class Upstream(Protocol):
    """Where a tool really runs.

    `invoke` returns the tool's answer as JSON data, or as an `Answer` where there is more to say. It raises
    `NoEffect` when it can prove that nothing happened, and anything else when it cannot. It keeps no clock of
    its own: at the deadline it is cancelled.

    One that says `taskless = True` needs no task of its own: it ends as soon as it is cancelled, or does not
    mind to be finished in another task than it was begun in.
    """

    concurrency: int
    personal: bool
    """Whether it answers each principal differently: then nothing it said to one is shown to another."""

    async def invoke(self, attempt: Attempt) -> Any: ...
    async def close(self) -> None: ...
