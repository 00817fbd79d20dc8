"""Has anybody touched this writer's records?

Each process writes its own chain: a record names its writer, its place there and the hash of the record
before it. Writers never wait for each other, and a changed, removed or reordered record breaks its chain.
"""

import hashlib
from collections.abc import Iterable
from struct import Struct

from holdfast.model.record import Record as Record

GENESIS = bytes(32)
"""What the first record of a writer has before it."""

_DOMAIN = b"holdfast.record.1"
_place_and_lengths = Struct(">QdQQQQQ").pack
_sha256 = hashlib.sha256


def record_hash(
    tenant: str, writer: str, seq: int, call_id: str, kind: str, at: float, body: str, prev: bytes
) -> bytes:
    """SHA-256 over every member; lengths go first, so that no two records run into the same bytes."""
    # Spelled out: this is done for every record, when it is written and whenever the log is verified.
    text = f"{tenant}{writer}{call_id}{kind}{body}"
    if text.isascii():  # as many bytes as characters
        place = _place_and_lengths(seq, at, len(tenant), len(writer), len(call_id), len(kind), len(body))
    else:
        lengths = [len(one.encode()) for one in (tenant, writer, call_id, kind, body)]
        place = _place_and_lengths(seq, at, *lengths)
    return _sha256(_DOMAIN + prev + place + text.encode()).digest()


Mark = tuple[int, bytes]


class Chain:
    """The end of one writer's chain, where its next record goes."""

    __slots__ = ("_prev", "_seq", "writer")

    def __init__(self, writer: str) -> None:
        self.writer = writer
        self._seq = 0
        self._prev = GENESIS

    def append(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> Record:
        seq, prev = self._seq + 1, self._prev
        hashed = record_hash(tenant, self.writer, seq, call_id, kind, at, body, prev)
        self._seq, self._prev = seq, hashed
        return Record(tenant, self.writer, seq, call_id, kind, at, body, prev, hashed)

    def mark(self) -> Mark:
        return self._seq, self._prev

    def reset(self, mark: Mark) -> None:
        """Forget what was appended since `mark`: it was not committed."""
        self._seq, self._prev = mark


def first_fault(records: Iterable[Record]) -> str | None:
    """What is wrong with one writer's records, given in order; None when nothing is."""
    prev = GENESIS
    for seq, record in enumerate(records, 1):
        if record.seq != seq:
            return f"record {seq} of writer '{record.writer}' is missing"
        if record.prev != prev:
            return f"record {seq} of writer '{record.writer}' does not follow the one before it"
        if record_hash(*record[:-1]) != record.hash:
            return f"record {seq} of writer '{record.writer}' was changed"
        prev = record.hash
    return None
