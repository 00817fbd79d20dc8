"""Where can be found what a store did after its backup was taken?"""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from holdfast.config import Config
from holdfast.gateway import engines
from holdfast.gateway.auditing import signer
from holdfast.gateway.engines import Open
from holdfast.model.errors import StoreError
from holdfast.ports import Secrets
from holdfast.stores.backup.archive import is_backup, opened
from holdfast.stores.backup.export_merge import is_export
from holdfast.stores.backup.life import Life
from holdfast.stores.backup.lives import SqlLives
from holdfast.stores.backup.manifest import PURPOSE
from holdfast.stores.backup.merge import Merged
from holdfast.stores.backup.restore import load
from holdfast.stores.sqlite.vessel import SqliteVessel


class Lost(NamedTuple):
    """Something that is left of a lost store."""

    merge: Callable[[SqlLives, Secrets, float], Awaitable[Merged]]
    complete: bool
    """Whether it can be all there was: an export ends at a checkpoint, a backup when it was taken."""


async def kept(config: Config, missed: list[Life]) -> list[Lost]:
    """What restores have kept of the stores they replaced."""
    found = [await engines.kept(config, life.number) for life in missed]
    return [Lost(partial(_merged, source), True) for source in found if source is not None]


async def named(config: Config, name: str) -> Lost:
    """What an operator names: a database, a backup, or an export of the log."""
    if name.startswith("postgres"):
        return Lost(partial(_merged, partial(engines.postgres, name)), True)
    path = Path.cwd() / name.removeprefix("sqlite:///")
    if not path.is_file():
        raise StoreError(f"there is no file '{path}'")
    if is_export(path):
        return Lost(partial(_told, path, config), False)
    if is_backup(path):
        return Lost(partial(_unpacked, path), False)
    return Lost(partial(_merged, partial(engines.sqlite, path)), True)


async def _merged(left: Open, lives: SqlLives, secrets: Secrets, since: float) -> Merged:
    source = await left()
    try:
        return await lives.merge(source, since)
    finally:
        await source.close()


async def _told(path: Path, config: Config, lives: SqlLives, secrets: Secrets, since: float) -> Merged:
    return await lives.merge_export(path, signer(config).verifier, since)


async def _unpacked(path: Path, lives: SqlLives, secrets: Secrets, since: float) -> Merged:
    async with _database(path, secrets) as database:
        merged = await _merged(partial(engines.sqlite, database), lives, secrets, since)
    merged.source = str(path)
    return merged


@asynccontextmanager
async def _database(path: Path, secrets: Secrets) -> AsyncIterator[Path]:
    """A backup as a database of its own."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        database = Path(folder) / "backup.db"
        vessel = SqliteVessel(database)
        with opened(path, lambda raw: secrets.sign("*", PURPOSE, raw)) as backup:
            try:
                await load(vessel, backup)
                await vessel.launch(0)
            finally:
                await vessel.abandon()
        yield database
