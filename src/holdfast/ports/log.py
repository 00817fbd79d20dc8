"""Where is the log, and what proves it?"""

from collections.abc import Sequence
from typing import Any, Protocol

from holdfast.model.record import Entry, Use


class Audit(Protocol):
    """The records of all tenants as one Merkle tree; a tenant sees its own, and proves them to anybody."""

    async def sequence(self, *, others: bool = True) -> int:
        """Append what is committed and not in the tree yet, durably; how many records that were.

        Without `others`, processes that live are left to take in what waits beside the database for them.
        """
        ...

    async def head(self) -> tuple[int, bytes]:
        """The size of the tree and its root."""
        ...

    async def inclusion(self, leaf: int, size: int) -> Sequence[bytes]: ...
    async def consistency(self, first: int, second: int) -> Sequence[bytes]: ...
    async def find(self, tenant: str, writer: str, seq: int) -> Entry | None: ...

    async def of_call(self, tenant: str, call_id: str, after: int, limit: int) -> Sequence[Entry]:
        """A call's records after leaf `after`, in the order of the tree."""
        ...

    async def since(self, tenant: str, at: float, after: int, limit: int) -> Sequence[Entry]:
        """A tenant's records from a time and leaf on, in the order of their times."""
        ...

    async def before(self, tenant: str, at: float, leaf: int, limit: int) -> Sequence[Entry]:
        """A tenant's records before a time and leaf, newest first."""
        ...

    async def checkpoint(self, leaf: int) -> str | None:
        """The newest signed note over a tree that has this leaf."""
        ...

    async def keep_checkpoint(self, size: int, note: str) -> None: ...

    async def note(self, tenant: str, act: str, by: str, *, about: str = "", **members: Any) -> None:
        """Record what somebody did to the gateway itself; found by `about` as a call's records by its id."""
        ...

    async def tenants(self) -> Sequence[str]:
        """Everybody who has records in the tree."""
        ...

    async def usage(self, since: float) -> Sequence[Use]:
        """Who ran which version of which tool since a time; from the records, so not for every call."""
        ...

    async def prune(self, tenant: str, before: float, anchored: int) -> int:
        """Drop the tenant's records older than `before` among the first `anchored`; their hashes stay."""
        ...

    async def erase(self, tenant: str, by: str) -> bool:
        """Drop the tenant's data key; False when there is none."""
        ...

    async def notice_erasures(self) -> None:
        """Forget keys that another process dropped."""
        ...
