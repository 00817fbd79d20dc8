"""A PostgreSQL whose tables are on a file system of a few megabytes: it can be filled to its last byte.

The tables run full, not the log: a server that cannot write its log ends, which the blackouts are about. Only
who may mount has such a disk, which is root on Linux.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg

from tests.postgres_server import ROLE, Postgres

SIZE_MB = 48
BLOCK = b"\0" * 65536


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"

    async def fill(self) -> None:
        with self._ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(BLOCK)

    async def make_room(self) -> None:
        self._ballast.unlink(missing_ok=True)


@asynccontextmanager
async def small_disk() -> AsyncIterator[tuple[str, SmallDisk]]:
    """The URL of an empty database on a small disk, and the disk."""
    server = Postgres(durable=False)
    try:
        await asyncio.to_thread(server.start)
        folder = server.folder / "small"
        folder.mkdir()
        await asyncio.to_thread(_mount, folder)
        try:
            await _put_on(server, folder)
            yield server.url_of("small"), SmallDisk(folder)
            await asyncio.to_thread(server.stop)
        finally:
            await asyncio.to_thread(_unmount, folder)
    finally:
        await asyncio.to_thread(server.remove)


async def _put_on(server: Postgres, folder: Path) -> None:
    connection = await asyncpg.connect(server.admin_url())
    try:
        await connection.execute(f"CREATE TABLESPACE small OWNER {ROLE} LOCATION '{folder}'")
        await connection.execute(f"CREATE DATABASE small OWNER {ROLE} TABLESPACE small")
    finally:
        await connection.close()


def _mount(folder: Path) -> None:
    options = f"size={SIZE_MB}m,mode=0777"
    subprocess.run([_program("mount"), "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    owner = folder.parent.stat()
    os.chown(folder, owner.st_uid, owner.st_gid)


def _unmount(folder: Path) -> None:
    subprocess.run([_program("umount"), "--lazy", folder], check=True)


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"there is no '{name}' here"
    return found
