"""Which sessions do upstreams keep open, and who ends them? EXE-8."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from holdfast.model.contract import Contract
from holdfast.model.upstream_session import SessionLine, SessionState, UpstreamSession
from holdfast.model.version import parse_version
from holdfast.model.vocabulary import ToolStatus
from holdfast.ports.calls import Listing

_GONE = (ToolStatus.SUNSET, ToolStatus.REVOKED)


class UpstreamSessions(Protocol):
    """Sessions at upstreams. They are begun, worked in and ended by the claims and outcomes of calls."""

    async def get(self, tenant: str, session_id: str) -> UpstreamSession | None: ...

    async def list(
        self, tenant: str, *, principal: str | None = None, limit: int = 50
    ) -> Sequence[UpstreamSession]:
        """Newest first."""
        ...

    async def going_on(self, limit: int) -> Sequence[UpstreamSession]:
        """Those that may have to be ended or followed now, of every tenant, longest untouched first.

        Not those that are open and not left alone yet, unless they end with a process.
        """
        ...

    async def lines(self, tenant: str, session_id: str) -> Sequence[SessionLine]:
        """What was done in it, in order. What was rolled back is no longer told in full."""
        ...

    async def move(self, session: UpstreamSession, state: SessionState, why: str, by: str) -> bool:
        """Conditional on the session being as it was when it was read.

        What was done in one that is ROLLED_BACK is compensated from then on.
        """
        ...

    async def trying(self, session: UpstreamSession, why: str) -> bool:
        """Take the next try at ending it; False when somebody else has."""
        ...

    async def forget(self, before: float) -> int:
        """Drop those that were over by then."""
        ...


class SessionEnding(Protocol):
    """Ends a session for whoever began it, by a governed call in their name."""

    async def roll_back(self, tenant: str, session_id: str, why: str) -> bool:
        """Whether it is rolled back now; where it is not, that is tried again later."""
        ...


def partner(listings: Iterable[Listing], namespace: str, name: str, role: str) -> Contract | None:
    """The newest tool of this role in the sessions of this name; None where there is none to be used."""
    found = [
        listing.tool.contract
        for listing in listings
        if (part := listing.tool.session) is not None
        and (part.name, part.role) == (name, role)
        and listing.tool.contract.identity.namespace == namespace
        and listing.status not in _GONE
    ]
    return max(found, key=lambda contract: parse_version(contract.version), default=None)
