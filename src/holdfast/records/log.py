"""What must be read of a log to verify it? A database and an export both offer this."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from holdfast.model.record import Record
from holdfast.records.coverage import Attempt


class Leaf(NamedTuple):
    """One place in the tree, and the record that should be there."""

    place: int
    tenant: str
    writer: str
    seq: int
    call_id: str
    at: float
    hash: bytes
    record: Record | None


class Log(Protocol):
    def leaves(self) -> Iterator[Leaf]:
        """In the order of the tree, each with its record, if that is still there."""
        ...

    def waiting(self) -> Iterator[Record]:
        """Records that are not in the tree, each writer's in order."""
        ...

    def nodes(self, level: int) -> Iterator[tuple[int, bytes]] | None:
        """The kept subtrees of one level from 1 on, in order; None where none are kept."""
        ...

    def kept_checkpoints(self) -> Iterable[str]:
        """The notes inside the log, which whoever changed it may have changed too."""
        ...

    def ledger(self) -> Iterable[Attempt] | None:
        """What was done, beside what was recorded; None where it is not known."""
        ...
