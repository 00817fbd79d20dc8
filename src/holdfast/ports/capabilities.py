"""Which tool of a capability answers for a key?"""

from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """A key of one principal, in one capability."""

    tenant: str
    principal: str
    capability: str
    key: str


class Capabilities(Protocol):
    """A claim of any other tool of the capability is denied, in its own transaction; EXE-4."""

    async def tool(self, place: Place) -> str | None:
        """The one that answers; None where nobody claimed anything under this key yet."""
        ...

    async def move(self, place: Place, tool: str, to: str) -> str:
        """Let `to` answer from now on instead of `tool`, if the ledger says that nothing was done there.

        The one that answers after that: where it is not `to`, somebody else moved it, or there is an effect,
        or there may be one.
        """
        ...
