"""Is a database brought up to date once, whoever starts first?"""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.model.errors import StoreError
from holdfast.stores.sqlite.migrate import migrate, shipped
from tests.requirements import requirement

STARTER = """
import sys
from pathlib import Path
from holdfast.stores.sqlite.migrate import migrate
print("ready", flush=True)
sys.stdin.readline()
migrate(Path(sys.argv[1]))
"""


def versions(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [v for (v,) in connection.execute("SELECT version FROM schema_migration ORDER BY version")]


@requirement("DEC-4", "PPL-6")
def test_processes_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for starter in starters:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    for starter in starters:
        starter.communicate()
    assert [starter.returncode for starter in starters] == [0, 0, 0]
    assert versions(path) == list(shipped())


@requirement("DEC-4")
def test_a_database_newer_than_the_code_is_refused_and_left_alone(tmp_path: Path) -> None:
    path, newest = tmp_path / "holdfast.db", max(shipped())
    migrate(path, {**shipped(), newest + 1: "CREATE TABLE novelty (a)"})
    with pytest.raises(StoreError, match=rf"at version {newest + 1}, newer .* upgrade holdfast"):
        migrate(path)
    assert versions(path) == [*shipped(), newest + 1]


@requirement("DEC-4")
def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    migrate(path)
    broken = {**shipped(), 999: "CREATE TABLE half (a);\nCREATE TABLE half (a);"}
    with pytest.raises(StoreError, match="cannot be brought up to date"):
        migrate(path, broken)
    assert versions(path) == list(shipped())
    migrate(path, {**shipped(), 999: "CREATE TABLE half (a);"})
    assert versions(path) == [*shipped(), 999]


@requirement("DEC-4")
def test_the_tenant_leads_every_primary_key(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        leading = {
            table: [c[1] for c in connection.execute(f"PRAGMA table_info({table})") if c[5] == 1]
            for table in tables - {"schema_migration"}
        }
    assert len(leading) >= 8
    assert {tuple(columns) for columns in leading.values()} == {("tenant",)}
