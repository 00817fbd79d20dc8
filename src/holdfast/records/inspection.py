"""Is this log what was written, all of it, in its order?

Every record is hashed again and held against its writer's chain and its leaf in the tree; the tree is built
again and held against its kept subtrees and against every signed checkpoint. A fault names its record.
"""

import struct
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, zip_longest
from operator import itemgetter
from typing import Any

import orjson

from holdfast.model.record import Record
from holdfast.records.anchors import Anchors, Restart
from holdfast.records.chain import GENESIS, record_hash
from holdfast.records.coverage import ATTEMPTS, Coverage
from holdfast.records.log import Leaf, Log, Row, leaf_from
from holdfast.records.merkle import Frontier, Made, leaf_hash
from holdfast.records.note import Verifier
from holdfast.records.report import Report

Head = tuple[int, bytes, bytes]
"""A chain's last number and hash, and the hash its record has by itself where that differs."""
_FRESH: Head = (0, GENESIS, GENESIS)
_LEVEL = itemgetter(0)
_UNWRITABLE = (struct.error, UnicodeEncodeError)
"""What a number or a text brings about that no writer can have written."""
_HASH = 6
"""Where in a row the hash is that the tree has."""


def inspect(log: Log, outside: Sequence[str], verifier: Verifier | None) -> Report:
    """Look at all of it. `outside` are the notes of checkpoints kept where the log's keeper cannot write."""
    started, inspection = time.perf_counter(), Inspection(log, Report())
    anchors = Anchors(outside, log.kept_checkpoints(), verifier, inspection.report)
    inspection.read_tree(anchors)
    inspection.read_waiting()
    inspection.tell_removed()
    anchors.tell(inspection.restarts)
    inspection.report.seconds = time.perf_counter() - started
    return inspection.report


class Inspection:
    def __init__(self, log: Log, report: Report, *, whole_calls: bool = True) -> None:
        """`whole_calls`: no call has records that are not in this log."""
        self.report = report
        self._log = log
        self._whole_calls = whole_calls
        self._heads: dict[str, Head] = {}
        self._coverage = Coverage(log.ledger())
        self._removed: list[Leaf] = []
        self._pruned_to: dict[str, int] = {}
        """Per tenant, the last leaf that a record says was pruned."""
        self._place = -1
        """Of the leaf that was looked at last."""
        self.restarts: list[Restart] = []

    def read_tree(self, anchors: Anchors) -> None:
        tree, levels, signed = Frontier(), _Levels(self._log, self.report), sorted(anchors.sizes)
        for page in self._log.pages():
            self._check_page(page)
            hashes, size, done = [leaf_hash(row[_HASH]) for row in page], tree.size, 0
            for asked in signed[bisect_right(signed, size) : bisect_right(signed, size + len(page))]:
                levels.compare(tree.extend(hashes[done : asked - size]))
                done = asked - size
                anchors.seen(asked, tree.root(), leaf_from(page[done - 1]))
            levels.compare(tree.extend(hashes[done:]))
        levels.close()
        self.report.leaves = tree.size
        self.report.root = tree.root().hex()
        anchors.seen(tree.size, tree.root(), None)

    def read_waiting(self) -> None:
        """What no tree vouches for yet stands in its chain all the same."""
        for record in self._log.waiting():
            seq, head, own = self._heads.get(record.writer, _FRESH)
            self.report.records += 1
            if record.seq <= seq:
                self.report.add("inserted", _name(record), "is not in the tree, although later ones are")
                continue
            self.report.waiting += 1
            self._see(record)
            if _hash_of(record) != record.hash:
                self.report.add("changed", _name(record), "was changed")
            elif record.seq != seq + 1:
                self.report.add("removed", f"record {seq + 1} of writer '{record.writer}'", "is missing")
            elif record.prev not in (head, own):
                self.report.add("moved", _name(record), "does not follow the one before it")
            self._heads[record.writer] = (record.seq, record.hash, record.hash)

    def tell_removed(self) -> None:
        """Only now is every record read that might say what was pruned."""
        pruned: set[tuple[str, str]] = set()
        for leaf in self._removed:
            if leaf.place <= self._pruned_to.get(leaf.tenant, -1):
                self.report.pruned += 1
                pruned.add((leaf.tenant, leaf.call_id))
            else:
                self.report.add("removed", _leaf_name(leaf), "was removed")
        if self._whole_calls:
            self._coverage.tell(self.report, pruned)

    def check_alone(self, leaf: Leaf) -> None:
        """A leaf of a log of which not all is here: its neighbours in its chain may be missing."""
        own = self._check(leaf)
        seq, head, other = self._heads.get(leaf.writer, _FRESH)
        record = leaf.record
        if record is not None and leaf.seq == seq + 1 and record.prev not in (head, other):
            self.report.add("moved", _name(record), "does not follow the one before it")
        self._heads[leaf.writer] = (leaf.seq, leaf.hash, own)

    def _check_page(self, page: Sequence[Row]) -> None:
        """Nearly every record is what it should be, where it should be: then nothing more is made of it."""
        heads, see, expected = self._heads, self._coverage.see, self._place + 1
        for row in page:
            place, tenant, writer, seq, call_id, at, hashed, said, kind, said_at, body, prev, own = row
            last, head, _ = heads.get(writer, _FRESH)
            try:
                good = (
                    place == expected
                    and seq == last + 1
                    and prev == head
                    and own == hashed
                    and said == call_id
                    and said_at == at
                    and record_hash(tenant, writer, seq, said, kind, said_at, body, prev) == own
                )
            except _UNWRITABLE:
                good = False
            self._place = place
            if good:
                heads[writer] = (seq, hashed, hashed)
                self.report.records += 1
                if kind in ATTEMPTS:
                    see(tenant, said, kind, body)
                elif kind == "control":
                    self._see_control(tenant, body)
            else:
                self._look_closer(leaf_from(row), expected)
            expected = place + 1

    def _look_closer(self, leaf: Leaf, expected: int) -> None:
        if leaf.place != expected:
            self._misplaced(leaf, expected)
        self._place_in_chain(leaf, self._check(leaf))

    def _misplaced(self, leaf: Leaf, expected: int) -> None:
        if leaf.place > expected:
            self.report.add(
                "removed", f"leaf {expected} of the tree", f"is missing before {_leaf_name(leaf)}"
            )
        else:
            self.report.add("moved", _leaf_name(leaf), f"is leaf {leaf.place}, where {expected} belongs")

    def _check(self, leaf: Leaf) -> bytes:
        """Compare a leaf and its record; the hash the record has by itself."""
        record = leaf.record
        if record is None:
            self._removed.append(leaf)
            return leaf.hash
        self.report.records += 1
        self._see(record)
        own = _hash_of(record)
        if own != record.hash:
            self.report.add("changed", _name(record), "was changed")
        elif own != leaf.hash:
            self.report.add("changed", _name(record), "is not the one in the tree: it was written anew")
        elif record.call_id != leaf.call_id or record.at != leaf.at:
            self.report.add("changed", _name(record), "is listed in the tree under another call or time")
        return own

    def _place_in_chain(self, leaf: Leaf, own: bytes) -> None:
        seq, head, other = self._heads.get(leaf.writer, _FRESH)
        record = leaf.record
        if leaf.seq > seq + 1:
            self.report.add("removed", f"record {seq + 1} of writer '{leaf.writer}'", "is missing")
        elif leaf.seq <= seq:
            self.report.add("moved", _leaf_name(leaf), f"comes after record {seq} of its writer")
        elif record is not None and record.prev not in (head, other) and own == record.hash:
            self.report.add("moved", _name(record), "does not follow the one before it")
        self._heads[leaf.writer] = (leaf.seq, leaf.hash, own)

    def _see(self, record: Record) -> None:
        if record.kind in ATTEMPTS:
            self._coverage.see(record.tenant, record.call_id, record.kind, record.body)
        elif record.kind == "control":
            self._see_control(record.tenant, record.body)

    def _see_control(self, tenant: str, said: str) -> None:
        try:
            body = orjson.loads(said)
            if body["operation"] == "prune":
                through = int(body["through"])
                self._pruned_to[tenant] = max(through, self._pruned_to.get(tenant, -1))
            elif body["operation"] == "recover" and "restarted" in body:
                self.restarts.append(_restart(self._place, body))
        except (ValueError, KeyError, TypeError):
            return


def _restart(leaf: int, body: dict[str, Any]) -> Restart:
    size, signed, time = (body["restarted"][name] for name in ("size", "signed", "time"))
    text = (
        f"the log starts anew after {size} records: the store was {body['why']}, and what was recorded since,"
        f" up to record {signed} signed at {time}, is lost, says '{body['caller']}': {body['note']}"
    )
    return Restart(leaf, int(size), int(signed), str(time), text)


class _Levels:
    """The kept subtrees, read beside the ones that are made again."""

    def __init__(self, log: Log, report: Report) -> None:
        self._log = log
        self._report = report
        self._kept: dict[int, Iterator[tuple[int, bytes]] | None] = {}

    def compare(self, made: list[Made]) -> None:
        """Of one level after the other, each from left to right."""
        for level, nodes in groupby(made, _LEVEL):
            if level not in self._kept:
                self._kept[level] = self._log.nodes(level)
            kept = self._kept[level]
            if kept is not None:
                named = [node[1:] for node in nodes]
                self._hold_against(level, named, list(islice(kept, len(named))))

    def _hold_against(self, level: int, made: list[tuple[int, bytes]], kept: list[tuple[int, bytes]]) -> None:
        if made == kept:
            return
        for (place, hashed), found in zip_longest(made, kept):
            if found != (place, hashed):
                self._tell(level, place, found)

    def close(self) -> None:
        for level, kept in self._kept.items():
            for place, _ in kept or ():
                self._report.add("inserted", f"node {level}/{place} of the tree", "belongs to no leaves")

    def _tell(self, level: int, place: int, found: tuple[int, bytes] | None) -> None:
        if found is not None and found[0] == place:
            covers = f"leaves {place << level} to {((place + 1) << level) - 1}"
            self._report.add("changed", f"node {level}/{place} of the tree", f"does not fit {covers}")
        else:
            self._report.add("removed", f"node {level}/{place} of the tree", "is missing")


def _hash_of(record: Record) -> bytes:
    try:
        return record_hash(*record[:-1])
    except _UNWRITABLE:
        return b""


def _name(record: Record) -> str:
    return f"record {record.seq} of writer '{record.writer}' (call '{record.call_id}')"


def _leaf_name(leaf: Leaf) -> str:
    return f"record {leaf.seq} of writer '{leaf.writer}' (call '{leaf.call_id}')"
