"""What must be read of a log to verify it? A database and an export both offer this."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

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


class Row(Protocol):
    """A leaf as it is read, for whoever looks at millions: its place, tenant, writer, seq, call_id, at
    and hash, then its record's call_id, kind, at, body, prev and hash, all None where that is gone.
    """

    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, column: int, /) -> Any: ...


def leaf_from(row: Row) -> Leaf:
    place, tenant, writer, seq, call_id, at, hashed, said, kind, said_at, body, prev, own = row
    record = None if said is None else Record(tenant, writer, seq, said, kind, said_at, body, prev, own)
    return Leaf(place, tenant, writer, seq, call_id, at, hashed, record)


class Log(Protocol):
    def pages(self) -> Iterator[Sequence[Row]]:
        """The leaves in the order of the tree, each with its record, if that is still there."""
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
