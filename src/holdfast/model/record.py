"""What is one audit entry, and where does it stand in the log?"""

from typing import NamedTuple


class Record(NamedTuple):
    tenant: str
    writer: str
    seq: int
    call_id: str
    kind: str
    at: float
    body: str
    prev: bytes
    hash: bytes

    @property
    def id(self) -> str:
        """How people and programs name it."""
        return f"{self.writer}:{self.seq}"


class Entry(NamedTuple):
    """A record and its leaf in the tree of all records."""

    leaf: int
    record: Record


class Use(NamedTuple):
    """How often somebody ran one version of a tool."""

    tool: str
    """With its version, as `ns.name@1.0.0`."""
    tenant: str
    caller: str
    agent: str
    calls: int
    last_at: float


class Proof(NamedTuple):
    """That a record is in the log: the hashes from its leaf to the root of the first `size` records."""

    entry: Entry
    size: int
    root: bytes
    path: tuple[bytes, ...]
    checkpoint: str | None
    """The signed note of that root; None while the record is not behind a checkpoint."""


def record_place(id: str) -> tuple[str, int] | None:
    """Writer and number in a record's id."""
    writer, colon, seq = id.rpartition(":")
    return (writer, int(seq)) if colon and writer and seq.isdecimal() and len(seq) < 19 else None
