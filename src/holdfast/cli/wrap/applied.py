"""How is a client's file changed in place, and how is that taken back?

The file as it was is kept beside it, with a note of what was written. Taking it back restores the file byte
for byte where nothing else changed, puts the servers back where other settings changed, and refuses else.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from holdfast.cli.wrap.jsonc import Node, parse
from holdfast.model.errors import ConfigError, HoldfastError


class Done(StrEnum):
    APPLIED = "applied"
    ALREADY = "already applied"
    UNDONE = "undone"
    PUT_BACK = "servers put back; other settings changed since and stay"


@dataclass(frozen=True, slots=True)
class Trail:
    """What an apply leaves beside the file."""

    file: Path

    @property
    def backup(self) -> Path:
        return self.file.with_name(self.file.name + ".holdfast-backup")

    @property
    def note(self) -> Path:
        return self.file.with_name(self.file.name + ".holdfast-applied")

    def applied(self) -> bool:
        """Whether the file holds what was written, whatever else changed in it."""
        if not self.note.is_file():
            return False
        path, digest = self._noted()
        now = _at(self.file, path)
        return now is not None and _digest(now) == digest

    def apply(self, before: bytes, after: bytes, path: tuple[str, ...]) -> Done:
        """Replace the file; what it was is safe on disk before it changes."""
        if self.file.read_bytes() != before:
            raise HoldfastError(f"{str(self.file)!r} changed just now; run the command again")
        if self.backup.exists() and self.backup.read_bytes() != before:
            raise HoldfastError(
                f"{self.backup.name!r} is there from an earlier --apply and differs from the file; "
                "run with --undo first, or move it away if you do not need it"
            )
        if not self.backup.exists():
            _create(self.backup, before)
        written = _part(after.decode(), path)
        _replace(self.note, json.dumps({"path": path, "sha256": _digest(written or "")}).encode(), 0o600)
        _replace(self.file, after)
        return Done.APPLIED

    def undo(self) -> Done:
        """Raises HoldfastError where that would lose something."""
        if not self.backup.is_file():
            raise ConfigError(f"nothing was applied to {self.file.name!r}: there is no {self.backup.name!r}")
        before, now = self.backup.read_bytes(), self.file.read_bytes()
        done = Done.UNDONE
        if now != before:
            restored, done = self._restored(before.decode(), now.decode(errors="surrogateescape"))
            _replace(self.file, restored.encode(errors="surrogateescape"))
        self.note.unlink(missing_ok=True)
        self.backup.unlink()
        return done

    def _restored(self, before: str, now: str) -> tuple[str, Done]:
        path, digest = self._noted()
        was, new = parse(before).find(*path), _found(now, path)
        if was is None or new is None or _digest(now[new.start : new.end]) != digest:
            raise HoldfastError(
                f"{'.'.join(path)!r} in {self.file.name!r} was changed after --apply, and --undo would lose "
                f"that; compare it with {self.backup.name!r} and put the servers back by hand, or take the "
                "change out and run --undo again"
            )
        old = before[was.start : was.end]
        restored = now[: new.start] + old + now[new.end :]
        return restored, Done.UNDONE if restored == before else Done.PUT_BACK

    def _noted(self) -> tuple[tuple[str, ...], str]:
        try:
            noted = json.loads(self.note.read_text())
            return tuple(noted["path"]), noted["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            raise HoldfastError(
                f"{self.note.name!r} is gone or damaged, so what was applied is not known; "
                f"copy {self.backup.name!r} over {self.file.name!r} yourself"
            ) from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _found(text: str, path: tuple[str, ...]) -> Node | None:
    try:
        return parse(text).find(*path)
    except ConfigError:
        return None


def _part(text: str, path: tuple[str, ...]) -> str | None:
    node = _found(text, path)
    return None if node is None else text[node.start : node.end]


def _at(file: Path, path: tuple[str, ...]) -> str | None:
    try:
        return _part(file.read_bytes().decode(), path)
    except (OSError, UnicodeDecodeError):
        return None


def _create(path: Path, content: bytes) -> None:
    """A file for its owner only, never over another one."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _replace(path: Path, content: bytes, mode: int | None = None) -> None:
    """All or nothing, through a link, with the rights the file has."""
    real = path.resolve()
    if mode is None:
        mode = real.stat().st_mode & 0o777
    number, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    try:
        with open(number, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.chmod(name, mode)
        os.replace(name, real)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
