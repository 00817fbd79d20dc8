"""Where can be found what a store did after its backup was taken?"""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from holdfast.config import Config
from holdfast.gateway.auditing import signer
from holdfast.model.errors import StoreError
from holdfast.ports import Secrets
from holdfast.stores.backup.archive import is_backup, opened
from holdfast.stores.backup.export_merge import is_export
from holdfast.stores.backup.life import Life
from holdfast.stores.backup.lives import SqlLives
from holdfast.stores.backup.manifest import PURPOSE
from holdfast.stores.backup.merge import Merged
from holdfast.stores.backup.restore import load
from holdfast.stores.backup.snapshot import Snapshot
from holdfast.stores.sqlite.snapshot import snapshot
from holdfast.stores.sqlite.vessel import SqliteVessel, before


class Lost(NamedTuple):
    """Something that is left of a lost store."""

    config: Config
    path: Path

    @property
    def complete(self) -> bool:
        """Whether it can be all there was: an export ends at a checkpoint, a backup when it was taken."""
        return not is_export(self.path) and not is_backup(self.path)

    async def merge(self, lives: SqlLives, secrets: Secrets, since: float) -> Merged:
        if is_export(self.path):
            return await lives.merge_export(self.path, signer(self.config).verifier, since)
        async with self._opened(secrets) as source:
            merged = await lives.merge(source, since)
        merged.source = str(self.path)
        return merged

    @asynccontextmanager
    async def _opened(self, secrets: Secrets) -> AsyncIterator[Snapshot]:
        with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
            path = self.path
            if is_backup(path):
                path = await _unpacked(path, Path(folder), secrets)
            source = snapshot(path)
            try:
                yield source
            finally:
                await source.close()


def kept(config: Config, missed: list[Life]) -> list[Lost]:
    """What restores have kept of the stores they replaced."""
    places = [before(config.store_path, life.number) for life in missed]
    return [Lost(config, path) for path in places if path.exists()]


def named(config: Config, name: str) -> Lost:
    """What an operator names: a database, a backup, or an export of the log."""
    path = Path.cwd() / name.removeprefix("sqlite:///")
    if not path.is_file():
        raise StoreError(f"there is no file '{path}'")
    return Lost(config, path)


async def _unpacked(path: Path, folder: Path, secrets: Secrets) -> Path:
    """A backup as a database of its own."""
    vessel = SqliteVessel(folder / "backup.db")
    with opened(path, lambda raw: secrets.sign("*", PURPOSE, raw)) as backup:
        try:
            await load(vessel, backup)
            await vessel.launch(0)
        finally:
            await vessel.abandon()
    return folder / "backup.db"
