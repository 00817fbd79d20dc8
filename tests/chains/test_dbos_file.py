"""Can DBOS always work with its file, whoever makes it at once, and whatever kills who makes it?"""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.chains.engines.dbos import DbosEngine
from holdfast.chains.engines.dbos_file import prepare
from holdfast.model.errors import StoreError
from holdfast.testing import ManualClock
from tests.polling import until
from tests.requirements import requirement
from tests.stored import durable

STEP = 6
"""One of so many statements is the last; each takes a tenth of a second."""
KILLED = """
import json, os, sys
from pathlib import Path
import sqlalchemy
from holdfast.chains.engines.dbos_file import prepare

def makes(path, last):
    'Ends in the middle, before the statement of that number.'
    said = 0
    @sqlalchemy.event.listens_for(sqlalchemy.Engine, "before_cursor_execute")
    def count(*_):
        nonlocal said
        said += 1
        if said == last:
            os.kill(os.getpid(), 9)
    prepare(path)
    os._exit(0)

number, step, killed = 1, int(sys.argv[2]), True
while killed:
    number += step
    path = Path(sys.argv[1]) / f"{number}.db"
    if not (child := os.fork()):
        makes(path, number)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
print(json.dumps(number))
"""


def tables(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [(version,)] = connection.execute("SELECT version FROM dbos_migrations").fetchall()
        [(count,)] = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchall()
    return int(count) if version else 0


async def drives(path: Path, store_folder: Path) -> bool:
    """Whether DBOS works with it."""
    driven: list[str] = []

    async def drive(tenant: str, run_id: str) -> None:
        driven.append(run_id)

    async with asyncio.timeout(60), durable("sqlite", store_folder, ManualClock()) as store:
        engine = DbosEngine(f"sqlite:///{path}", store.slots)
        await engine.start(drive)
        try:
            await engine.enqueue("acme", "run-1", 0)
            await until(lambda: driven == ["run-1"])
        finally:
            await engine.close()
    return True


@requirement("CHN-7", "PPL-6")
def test_several_that_make_it_at_once_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    for number in range(5):
        together, path = threading.Barrier(4), tmp_path / f"{number}.db"

        def begin(_: int, together: threading.Barrier = together, path: Path = path) -> None:
            together.wait(60)
            prepare(path)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(begin, range(4)))
        assert tables(path) > 5


@requirement("CHN-7", "IDM-4")
def test_who_is_killed_anywhere_while_it_makes_it_leaves_what_the_next_can_make(tmp_path: Path) -> None:
    prepare(tmp_path / "whole.db")
    program = [sys.executable, "-c", KILLED, str(tmp_path), str(STEP)]
    told = subprocess.run(program, stdout=subprocess.PIPE, check=True, text=True)
    last = json.loads(told.stdout)
    assert last > 50
    for number in range(1 + STEP, last + 1, STEP):
        prepare(tmp_path / f"{number}.db")
        assert tables(tmp_path / f"{number}.db") == tables(tmp_path / "whole.db")


@requirement("CHN-7")
async def test_what_was_left_half_made_before_is_made_anew_and_drives_runs(tmp_path: Path) -> None:
    path = tmp_path / "chains.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE dbos_migrations (version INTEGER NOT NULL PRIMARY KEY)")
        connection.execute("CREATE TABLE workflow_status (workflow_uuid TEXT PRIMARY KEY)")
    assert await drives(path, tmp_path)


@requirement("CHN-7", "PPL-1")
def test_a_file_that_is_something_else_is_left_alone_and_what_to_do_is_said(tmp_path: Path) -> None:
    path = tmp_path / "chains.db"
    path.write_text("words " * 1000)
    with pytest.raises(StoreError, match="remove it while nothing uses it"):
        prepare(path)
    assert path.read_text().startswith("words ")


@requirement("CHN-7", "PPL-6")
def test_where_it_is_whole_nobody_who_writes_there_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "chains.db"
    prepare(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        prepare(path)
        other.execute("ROLLBACK")
