"""Which tool of a capability answers for a key?"""

from collections.abc import Sequence
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

    async def move(self, place: Place, tool: str, to: str, tools: Sequence[str] = ()) -> str:
        """Let `to` answer from now on instead of `tool`, if the ledger says that nothing was done there.

        The one that answers after that: where it is not `to`, somebody else moved it, or there is an effect,
        or there may be one. Where nobody was said to answer yet, one of `tools` that has done something does:
        it may have been called before the configuration named them together.
        """
        ...
