"""Whom can a running tool ask, and tell how far it has come?

The client behind a call, for as long as it waits. Only what the client declared is asked of it, and never of
another: `session` tells clients apart.
"""

from collections.abc import Mapping
from typing import Any, Protocol


class Unanswerable(Exception):
    """The client cannot be asked this, has gone, or did not answer; `code` is JSON-RPC's."""

    def __init__(self, message: str, code: int = -32603, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Peer(Protocol):
    @property
    def session(self) -> str:
        """One client connection; what is meant for one never goes to another."""
        ...

    @property
    def modern(self) -> bool:
        """Speaks 2026-07-28: what a tool asks is returned, not pushed."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared, as it came."""
        ...

    @property
    def progress(self) -> bool:
        """Whether it asked to be told how far the call has come."""
        ...

    @property
    def log_level(self) -> str | None:
        """The least it wants to be told of a tool's log."""
        ...

    @property
    def input_responses(self) -> Mapping[str, Any] | None:
        """Answers to what this operation's last answer asked for (`inputResponses`)."""
        ...

    @property
    def request_state(self) -> str | None:
        """The upstream's own state of that exchange (`requestState`), as the upstream gave it."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Put a request to the client, such as `elicitation/create`; raises Unanswerable."""
        ...

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Notify the client; progress goes without its token. A client that left is not an error."""
        ...
