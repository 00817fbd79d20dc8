"""Does what the store says really prove that a record is in the log?"""

import struct

from holdfast.model.record import Proof, Record
from holdfast.model.story import Verified
from holdfast.records import checkpoint
from holdfast.records.chain import record_hash
from holdfast.records.merkle import is_included, leaf_hash
from holdfast.records.note import BadNote, Verifier


def verified(proof: Proof, verifier: Verifier | None) -> Verified:
    """Everything is worked out again: the record's hash, the way to the root, the signature over it."""
    record, note = proof.entry.record, proof.checkpoint
    own = _hash(record)
    return Verified(
        record=record.id,
        call_id=record.call_id,
        kind=record.kind,
        at=record.at,
        leaf=proof.entry.leaf,
        hash=record.hash.hex(),
        size=proof.size,
        root=proof.root.hex(),
        path=tuple(step.hex() for step in proof.path),
        checkpoint=note,
        signed_at=None if note is None else checkpoint.read(note).time,
        intact=own == record.hash,
        included=is_included(leaf_hash(own), proof.entry.leaf, proof.size, proof.path, proof.root),
        signed=note is not None and _signed(note, proof, verifier),
    )


def _hash(record: Record) -> bytes:
    try:
        return record_hash(*record[:-1])
    except (struct.error, UnicodeEncodeError):  # what no writer can have written
        return b""


def _signed(note: str, proof: Proof, verifier: Verifier | None) -> bool:
    if verifier is None:
        return False
    try:
        said = checkpoint.opened(note, verifier)
    except BadNote:
        return False
    return (said.size, said.root) == (proof.size, proof.root)
