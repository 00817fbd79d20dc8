"""How is a backup written, and is it still what was written?

A zip with one member per table, a row a line, and a manifest that speaks for every byte of them. Lines are
written and read as they come: no table is ever in memory. Half a backup never has its name.
"""

import base64
import hashlib
import os
import secrets
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

from holdfast.model.errors import StoreError
from holdfast.stores.backup.manifest import NAME, SEAL, Manifest, Member
from holdfast.stores.backup.snapshot import Row
from holdfast.stores.files import sync

BATCH = 500
"""Rows that are loaded together."""

Sign = Callable[[bytes], str]


class Pen:
    """Writes the members of one archive."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    async def table(self, name: str, columns: list[str], batches: AsyncIterator[list[Row]]) -> Member:
        digest, rows = hashlib.sha256(), 0
        with self._archive.open(f"{name}.jsonl", "w", force_zip64=True) as file:
            async for batch in batches:
                lines = b"".join(_line(row) for row in batch)
                digest.update(lines)
                file.write(lines)
                rows += len(batch)
        return Member(columns, rows, digest.hexdigest())

    def close(self, manifest: Manifest, sign: Sign) -> None:
        raw = manifest.to_json()
        self._archive.writestr(NAME, raw)
        self._archive.writestr(SEAL, sign(raw))


@contextmanager
def written(path: Path) -> Iterator[Pen]:
    """A new file at `path`, which is there, whole and on disk, when this ends well, and else is not."""
    if path.exists():
        raise StoreError(f"there is a file '{path}' already; give the backup another name")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                yield Pen(archive)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        sync(path.parent)
    except OSError as error:
        raise StoreError(f"the backup '{path}' cannot be written: {error}") from error
    finally:
        draft.unlink(missing_ok=True)


class Backup:
    """An archive that was looked at from end to end."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._archive = archive

    def batches(self, table: str) -> Iterator[list[Row]]:
        batch: list[Row] = []
        for line in self._lines(table):
            batch.append(_row(line))
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def check(self) -> None:
        """Every line, as it will be loaded; raises StoreError."""
        for table, member in self.manifest.tables.items():
            digest, rows = hashlib.sha256(), 0
            for line in self._lines(table):
                digest.update(line)
                rows += 1
            if (digest.hexdigest(), rows) != (member.sha256, member.rows):
                raise _damaged(self.path, f"'{table}' is not what was written")

    def _lines(self, table: str) -> Iterator[bytes]:
        with _faults_of(self.path), self._archive.open(f"{table}.jsonl") as file:
            yield from _buffered(file)


@contextmanager
def opened(path: Path, sign: Sign) -> Iterator[Backup]:
    """The backup at `path`, checked as a whole; raises StoreError when it is damaged or not this store's."""
    if not path.is_file():
        raise StoreError(f"there is no file '{path}'")
    with _faults_of(path), zipfile.ZipFile(path) as archive:
        raw, seal = archive.read(NAME), archive.read(SEAL).decode(errors="replace")
        try:
            manifest = Manifest.from_json(raw)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(path, f"its manifest cannot be read ({error})") from None
        if not secrets.compare_digest(sign(raw), seal):
            raise StoreError(
                f"the backup '{path}' does not belong to the key file here, or was changed; put back the key"
                " file it was made with"
            )
        backup = Backup(path, archive, manifest)
        backup.check()
        yield backup


def is_backup(path: Path) -> bool:
    return path.is_file() and zipfile.is_zipfile(path)


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise _damaged(path, str(error)) from None
    except OSError as error:
        raise StoreError(f"the backup '{path}' cannot be read: {error}") from error


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(f"'{path}' is no backup, or a damaged one: {why}; nothing was touched")


def _buffered(file: IO[bytes]) -> Iterator[bytes]:
    """Lines, read in large pieces: the zip file's own `readline` looks at every byte."""
    rest = b""
    while piece := file.read(1 << 20):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _line(row: Row) -> bytes:
    return orjson.dumps([_cell(value) for value in row]) + b"\n"


def _cell(value: Any) -> Any:
    return {"b64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _row(line: bytes) -> Row:
    return tuple(base64.b64decode(v["b64"]) if isinstance(v, dict) else v for v in orjson.loads(line))
