"""How does a log leave the house, so that anybody with the public key can verify it alone?

JSON lines: a header, one line per leaf, and a signed manifest over every byte before it. A whole log proves
itself, its tree is built again from its leaves; a part of it carries the way to the signed root with each
record. Every line has one spelling only: a line that says the same in other bytes was changed.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple

import orjson

from holdfast.model.record import Record
from holdfast.records.log import Leaf
from holdfast.records.note import Signer

FORMAT = 1
HEADER = ["holdfast_export", "origin", "tenant", "since", "size", "root", "checkpoints"]
"""The members of the first line, in their order."""
MOST_CHECKPOINTS = 256
"""Checkpoints that go with an export: enough to say where it was rewritten, few enough to carry."""


class Part(NamedTuple):
    """Which part of a log is exported; all of it by default."""

    tenant: str | None = None
    since: float | None = None

    @property
    def whole(self) -> bool:
        return self == Part()


class Head(NamedTuple):
    """The tree that an export is about."""

    size: int
    root: bytes
    checkpoints: Sequence[str]
    """Signed notes, oldest first; the last one is over exactly this tree."""


def write(
    file: BinaryIO,
    part: Part,
    head: Head,
    leaves: Iterable[Leaf],
    signer: Signer,
    path: Callable[[int], Sequence[bytes]],
) -> int:
    """Write an export; how many leaves it has. `path` proves a leaf, where the part is not the whole."""
    digest, count = hashlib.sha256(), 0

    def put(members: dict[str, Any]) -> None:
        line = orjson.dumps(members) + b"\n"
        digest.update(line)
        file.write(line)

    checkpoints = sampled(head.checkpoints)
    told = (FORMAT, signer.name, part.tenant, part.since, head.size, head.root.hex(), checkpoints)
    put(dict(zip(HEADER, told, strict=True)))
    for leaf in leaves:
        if leaf.place >= head.size:
            continue  # written since the checkpoint: for the next export
        put(_leaf(leaf, None if part.whole else path(leaf.place)))
        count += 1
    manifest = signer.sign(manifest_text(signer.name, count, digest.hexdigest()))
    file.write(orjson.dumps({"manifest": manifest}) + b"\n")
    return count


def manifest_text(name: str, count: int, digest: str) -> str:
    return f"{name} export\n{count} records\nsha256 {digest}\n"


def sampled(notes: Sequence[str]) -> list[str]:
    """A bounded number of checkpoints over the whole time, the last one always."""
    if len(notes) <= MOST_CHECKPOINTS:
        return list(notes)
    step = len(notes) / MOST_CHECKPOINTS
    return [notes[int((n + 1) * step) - 1] for n in range(MOST_CHECKPOINTS - 1)] + [notes[-1]]


def _leaf(leaf: Leaf, path: Sequence[bytes] | None) -> dict[str, Any]:
    place = {"leaf": leaf.place, "tenant": leaf.tenant, "writer": leaf.writer, "seq": leaf.seq}
    said: dict[str, Any] = {**place, "call_id": leaf.call_id, "at": leaf.at}
    record = leaf.record
    if record is not None:
        said |= {"kind": record.kind, "body": record.body, "prev": record.prev.hex()}
    said["hash"] = leaf.hash.hex()
    if path is not None:
        said["path"] = [step.hex() for step in path]
    return said


def leaf_of(said: dict[str, Any]) -> Leaf:
    """What a line says; raises ValueError, KeyError or TypeError for what is no leaf."""
    hashed = from_hex(said["hash"])
    tenant, writer, seq, call_id, at = (
        said["tenant"],
        said["writer"],
        said["seq"],
        said["call_id"],
        said["at"],
    )
    if not (isinstance(seq, int) and isinstance(said["leaf"], int) and isinstance(at, float)):
        raise TypeError("a number is not one")
    record = None
    if "body" in said:
        prev = from_hex(said["prev"])
        record = Record(tenant, writer, seq, call_id, said["kind"], at, said["body"], prev, hashed)
    return Leaf(said["leaf"], tenant, writer, seq, call_id, at, hashed, record)


def from_hex(text: str) -> bytes:
    """In its one spelling: capitals and spaces would say the same in other bytes."""
    raw = bytes.fromhex(text)
    if raw.hex() != text:
        raise ValueError("this is not how a hash is written")
    return raw
