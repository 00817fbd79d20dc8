"""What did the tree look like, signed, at a time nobody can change any more?

A checkpoint (https://c2sp.org/tlog-checkpoint) is a signed note of the tree's size and root. Checkpoints are
appended to a file outside the database: whoever can rewrite the database cannot rewrite them, and cannot sign
new ones.
"""

import base64
import binascii
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holdfast.holding import held
from holdfast.model.errors import StoreError
from holdfast.records.note import BadNote, Signer, Verifier, split

_GAP = b"\n\n\n"
"""Ends a note in the file; inside one there are never three line ends in a row."""
_TAIL = 8192
"""More than two notes are long."""
SIGNING_S = 2.0
"""It takes a sync of one file. Whoever has it for longer is stopped, and housekeeping goes on."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    origin: str
    size: int
    root: bytes
    time: str

    def text(self) -> str:
        root = base64.b64encode(self.root).decode()
        return f"{self.origin}\n{self.size}\n{root}\ntime {self.time}\n"

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Raises BadNote for anything but exactly what `text` writes."""
        try:
            origin, size, root, time, rest = text.split("\n")
            found = cls(origin, int(size), base64.b64decode(root, validate=True), time.removeprefix("time "))
        except (ValueError, binascii.Error):
            raise BadNote("it is not a checkpoint") from None
        if rest or found.text() != text or len(found.root) != 32:
            raise BadNote("it is not a checkpoint")
        return found


def read(note: str) -> Checkpoint:
    """What a note says, whoever signed it; raises BadNote."""
    return Checkpoint.parse(split(note)[0])


def opened(note: str, verifier: Verifier) -> Checkpoint:
    """What a note says that this key has signed about its own log; raises BadNote."""
    found = Checkpoint.parse(verifier.open(note))
    if found.origin != verifier.name:
        raise BadNote(f"it is about another log, '{found.origin}'")
    return found


def notes(text: str) -> tuple[list[str], str]:
    """The notes in a checkpoint file, and what is left at its end: half a note, after a power cut."""
    *whole, rest = text.split(_GAP.decode())
    return [f"{note}\n" for note in whole], rest


class CheckpointFile:
    """Checkpoints on disk, appended and never changed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[str]:
        """Every note, in order, and whatever else is there; nothing when there is no file."""
        try:
            found, rest = notes(self.path.read_bytes().decode(errors="replace"))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"the checkpoints '{self.path}' cannot be read: {error}") from error
        return [*found, rest] if rest else found

    def last(self) -> Checkpoint | None:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            _, note = _end(file)
        finally:
            os.close(file)
        return None if note is None else read(note)

    def append(self, note: str) -> None:
        """Durable when this returns. The caller holds the lock."""
        file = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            end, _ = _end(file)
            if end < os.fstat(file).st_size:  # a power cut left half a note; it never anchored anything
                os.ftruncate(file, end)
            os.pwrite(file, f"{note}\n\n".encode(), end)
            os.fsync(file)
        finally:
            os.close(file)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Of several processes one signs at a time."""
        with held(self.path, SIGNING_S):
            yield


def _end(file: int) -> tuple[int, str | None]:
    """Where the last whole note ends, and that note; only the end of the file is read."""
    size = os.fstat(file).st_size
    start = max(size - _TAIL, 0)
    tail = os.pread(file, size - start, start)
    end = tail.rfind(_GAP)
    if end < 0:
        return start, None  # nothing whole: a fresh file
    before = tail.rfind(_GAP, 0, end)
    note = tail[before + len(_GAP) if before >= 0 else 0 : end + 1]
    return start + end + len(_GAP), note.decode(errors="replace")


class Notary:
    """Signs what the tree is now, if it grew out of what was signed before."""

    def __init__(self, signer: Signer, file: CheckpointFile) -> None:
        self.signer = signer
        self.file = file

    @property
    def verifier(self) -> Verifier:
        return self.signer.verifier

    def last(self) -> Checkpoint | None:
        try:
            return self.file.last()
        except (OSError, UnicodeDecodeError, BadNote) as error:
            raise StoreError(f"the checkpoints '{self.file.path}' cannot be read: {error}") from error

    def publish(self, size: int, root: bytes, now: float, known: Checkpoint | None) -> str | None:
        """Append a checkpoint. `known` is the one the caller proved the tree to have grown out of.

        None when another process was faster, so that there is nothing new to sign.
        """
        try:
            with self.file.locked():
                last = self.last()
                if last is not None and last.size >= size:
                    return None
                if last != known:
                    return None  # somebody signed meanwhile: prove growth from there, next time
                time = (
                    datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                )
                note = self.signer.sign(Checkpoint(self.signer.name, size, root, time).text())
                self.file.append(note)
                return note
        except OSError as error:
            raise StoreError(f"the checkpoints '{self.file.path}' cannot be written: {error}") from error
