"""Is an exported log what was exported?

The same questions as of a log in a database, with the file as the only witness beside the public key.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

import orjson

from holdfast.model.record import Record
from holdfast.records import checkpoint
from holdfast.records.anchors import Anchors
from holdfast.records.export import FORMAT, HEADER, from_hex, leaf_of, manifest_text
from holdfast.records.inspection import Inspection
from holdfast.records.log import Leaf, Row
from holdfast.records.merkle import is_included, leaf_hash
from holdfast.records.note import BadNote, Verifier
from holdfast.records.report import Report

_PAGE = 500
_GONE = (None,) * 6


def inspect_export(file: BinaryIO, outside: Sequence[str], verifier: Verifier) -> Report:
    """Look at all of a file. `outside` are checkpoints that did not come with it."""
    started = time.perf_counter()
    export = Export(file, verifier)
    inspection = Inspection(export, export.report, whole_calls=export.since is None)
    if export.readable:
        anchors = Anchors([*outside, *export.checkpoints], (), verifier, export.report)
        if export.whole:
            inspection.read_tree(anchors)
            anchors.tell(inspection.restarts)
        else:
            _read_part(export, inspection)
        inspection.tell_removed()
        export.close()
    export.report.seconds = time.perf_counter() - started
    return export.report


def _read_part(export: "Export", inspection: Inspection) -> None:
    """Each record leads to the signed root by the path beside it; what lies between is not ours to see."""
    last = -1
    for leaf in export.leaves():
        if leaf.place <= last:
            export.report.add("moved", export.at, f"is leaf {leaf.place}, after {last}")
        last = leaf.place
        inspection.check_alone(leaf)
        if export.tenant is not None and leaf.tenant != export.tenant:
            export.report.add("inserted", export.at, f"belongs to another tenant than '{export.tenant}'")
        if not is_included(leaf_hash(leaf.hash), leaf.place, export.size, export.path, export.root):
            export.report.add("changed", export.at, "does not lead to the signed root")
        export.report.leaves += 1
    export.report.anchored = export.report.leaves if export.anchored else 0
    export.report.root = export.root.hex()


class Export:
    """Implements `Log` over the lines of a file, read once."""

    def __init__(self, file: BinaryIO, verifier: Verifier) -> None:
        self.report = Report()
        self.at = "line 1 (the header)"
        """The line that was read last."""
        self.path: list[bytes] = []
        self.anchored = False
        self.readable = False
        self.tenant: str | None = None
        self.since: float | None = None
        self.size = 0
        self.root = b""
        self.checkpoints: list[str] = []
        self._verifier = verifier
        self._lines = iter(file.readline, b"")
        self._digest = hashlib.sha256()
        self._number = 0
        self._count = 0
        self._manifest: str | None = None
        self._read_header()

    @property
    def whole(self) -> bool:
        return self.tenant is None and self.since is None

    # --- the log --------------------------------------------------------------------------

    def pages(self) -> Iterator[list[Row]]:
        leaves = self.leaves()
        while page := [_row(leaf) for leaf in islice(leaves, _PAGE)]:
            yield page

    def leaves(self) -> Iterator[Leaf]:
        for said in self._entries():
            try:
                leaf = leaf_of(said)
                self.path = [from_hex(step) for step in said.get("path", ())]
            except (ValueError, KeyError, TypeError):
                self.report.add("unreadable", self.at, "is no record")
                continue
            self.at = f"record {leaf.seq} of writer '{leaf.writer}' (call '{leaf.call_id}')"
            self._count += 1
            yield leaf

    def waiting(self) -> Iterator[Record]:
        return iter(())

    def nodes(self, level: int) -> None:
        return None  # an export carries leaves only

    def kept_checkpoints(self) -> tuple[str, ...]:
        return ()

    def ledger(self) -> None:
        return None

    # --- its lines ------------------------------------------------------------------------

    def close(self) -> None:
        """The manifest speaks for every byte before it."""
        if self._manifest is None:
            self.report.add("truncated", f"the file after {self.at}", "was cut off: its manifest is missing")
            return
        where = f"line {self._number} (the manifest)"
        try:
            said = self._verifier.open(self._manifest)
        except BadNote as bad:
            self.report.add("unsigned", where, f"cannot be trusted: {bad}")
            return
        if said != manifest_text(self._verifier.name, self._count, self._digest.hexdigest()):
            counted = said.partition("\n")[2].partition(" ")[0]
            text = f"speaks for other lines: {counted} records were exported, {self._count} are here"
            self.report.add("changed", where, text)

    def _read_header(self) -> None:
        line = next(self._lines, b"")
        self._number += 1
        self._digest.update(line)
        said = self._parsed(line)
        if said is None:
            return
        try:
            self._take_header(said)
        except (ValueError, KeyError, TypeError) as error:
            self.report.add("unreadable", self.at, f"is no header of an export: {error}")
            return
        self.readable = True
        self._check_header(said["origin"])

    def _take_header(self, said: dict[str, Any]) -> None:
        if list(said) != HEADER:
            raise ValueError("it has other members")
        if said["holdfast_export"] != FORMAT:
            raise ValueError(f"format {said['holdfast_export']} is not known here")
        self.tenant, self.since, self.size = said["tenant"], said["since"], int(said["size"])
        self.root, self.checkpoints = from_hex(said["root"]), [str(note) for note in said["checkpoints"]]

    def _check_header(self, origin: str) -> None:
        try:
            signed = checkpoint.opened(self.checkpoints[-1], self._verifier) if self.checkpoints else None
        except BadNote:
            signed = None  # told where every checkpoint is looked at
        self.anchored = signed is not None and (signed.size, signed.root) == (self.size, self.root)
        if not self.anchored:
            self.report.add(
                "changed", self.at, f"says {self.size} records, and its checkpoint does not agree"
            )
        if origin != self._verifier.name:
            self.report.add("changed", self.at, f"is of another log, '{origin}'")

    def _entries(self) -> Iterator[dict[str, Any]]:
        for line in self._lines:
            self._number += 1
            if self._manifest is not None:
                self.report.add("inserted", f"line {self._number}", "comes after the end")
                continue
            self.at = f"line {self._number} (after {self.at.partition(' (after ')[0]})"
            said = self._parsed(line)
            if said is not None and list(said) == ["manifest"]:
                self._manifest = str(said["manifest"])
                continue
            self._digest.update(line)
            if said is not None:
                yield said

    def _parsed(self, line: bytes) -> dict[str, Any] | None:
        try:
            said = orjson.loads(line)
        except orjson.JSONDecodeError:
            said = None
        if not isinstance(said, dict):
            self.report.add("unreadable", self.at, "cannot be read")
            return None
        if orjson.dumps(said) + b"\n" != line:  # the same in other words is another line
            self.report.add("changed", self.at, "is not spelled as it was written")
        return said


def _row(leaf: Leaf) -> Row:
    record = leaf.record
    return (*leaf[:-1], *(_GONE if record is None else record[3:]))
