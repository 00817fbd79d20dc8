"""Does the log lead to everything that was ever signed about it?

Checkpoints from outside are what its keeper cannot have changed. Those inside the log are signed too, and
tell of a change as well, but whoever changed the log may have removed them: they anchor nothing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.records import checkpoint
from holdfast.records.checkpoint import Checkpoint
from holdfast.records.log import Leaf
from holdfast.records.note import BadNote, Verifier
from holdfast.records.report import Report


class _Signed(NamedTuple):
    where: str
    checkpoint: Checkpoint
    outside: bool


class Restart(NamedTuple):
    """What a record says of a log whose end was lost, and which goes on from a backup."""

    leaf: int
    """Its own place: only once that is signed is it believed."""
    size: int
    signed: int
    time: str
    """Of the last checkpoint that was lost."""
    text: str

    def excuses(self, checkpoint: Checkpoint) -> bool:
        return self.size < checkpoint.size <= self.signed and checkpoint.time <= self.time


class Anchors:
    def __init__(
        self, outside: Sequence[str], inside: Iterable[str], verifier: Verifier | None, report: Report
    ) -> None:
        self._report = report
        self._verifier = verifier
        self._signed = [
            *self._read(outside, "checkpoint {}", True),
            *self._read(inside, "checkpoint {} inside the log", False),
        ]
        self._signed.sort(key=lambda signed: signed.checkpoint.size)
        self._roots: dict[int, bytes] = {}
        self._last: dict[int, Leaf] = {}
        self._size = 0
        self.sizes = frozenset(signed.checkpoint.size for signed in self._signed)
        """Where in the tree a root is asked for."""

    def seen(self, size: int, root: bytes, leaf: Leaf | None) -> None:
        """The tree had this root when it had this size, with `leaf` as the last."""
        self._roots[size] = root
        self._size = size
        if leaf is not None:
            self._last[size] = leaf

    def tell(self, restarts: Sequence[Restart] = ()) -> None:
        good, told = 0, False
        known: dict[int, _Signed] = {}
        believed = self._believed(restarts)
        for signed in self._signed:
            size, root = signed.checkpoint.size, signed.checkpoint.root
            if not self._leads_to(signed.checkpoint) and any(r.excuses(signed.checkpoint) for r in believed):
                continue
            other = known.setdefault(size, signed)
            if other.checkpoint.root != root:
                text = f"and {other.where} are both signed, and over {size} records they differ"
                self._report.add("forked", signed.where, text)
            elif size > self._size:
                text = f"is over {size} records, and only {self._size} are left: the end was cut off"
                self._report.add("truncated", signed.where, text)
            elif self._roots[size] == root:
                good = size
                if signed.outside:
                    self._report.anchored = max(self._report.anchored, size)
            elif not told:  # from here on every later one differs too
                told = True
                self._report.add("changed", signed.where, self._rewritten(good, signed.checkpoint))

    def _leads_to(self, signed: Checkpoint) -> bool:
        return signed.size <= self._size and self._roots[signed.size] == signed.root

    def _believed(self, restarts: Sequence[Restart]) -> list[Restart]:
        """Whoever cut the log off could have written such a record, but not had it signed."""
        found = [signed.checkpoint for signed in self._signed]
        last = max((signed.size for signed in found if self._leads_to(signed)), default=0)
        self._report.restarts += [restart.text for restart in restarts]
        return [restart for restart in restarts if restart.leaf < last]

    def _rewritten(self, good: int, signed: Checkpoint) -> str:
        first = f"after {_name(self._last[good])}" if good in self._last else "from the first"
        last = f"to {_name(self._last[signed.size])}" if signed.size in self._last else ""
        return (
            f"of {signed.time} does not lead to this log: leaves {good} to {signed.size - 1} were rewritten"
            f" after it was signed, {first} {last}"
        )

    def _read(self, notes: Iterable[str], name: str, outside: bool) -> list[_Signed]:
        found = []
        for number, note in enumerate(notes, 1):
            where = name.format(number)
            try:
                said = (
                    checkpoint.read(note)
                    if self._verifier is None
                    else checkpoint.opened(note, self._verifier)
                )
            except BadNote as bad:
                self._report.add("unsigned", where, f"cannot be trusted: {bad}")
                continue
            if self._verifier is None:
                continue  # nobody's word: without a key a signature says nothing
            self._report.checkpoints += outside
            found.append(_Signed(where, said, outside))
        return found


def _name(leaf: Leaf) -> str:
    return f"record {leaf.seq} of writer '{leaf.writer}' (call '{leaf.call_id}')"
