"""Is nothing that ran missing from the log, whatever happens to the process or the disk? AUD-5."""

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Effect, Gateway, Observation, Status, Undo, tool
from holdfast import config as configuration
from holdfast.gateway import auditing, logfile
from holdfast.model.function import FunctionTool
from holdfast.records.report import Report
from holdfast.stores.log import opened
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.audit.world import ANA, said
from tests.faults.crashing import POINTS
from tests.faults.test_crash_points import CONFIG, TOOLS, die, key
from tests.requirements import requirement
from tests.soak.effects import counting, told_of
from tests.soak.server import ROOT
from tests.soak.storm import Plan, Storm
from tests.stored import asked, place, url_of

STORM = Plan(processes=2, keys=60, deliveries=3, in_flight=4, kills=4, stops=1, stop_s=1.0)


def verified(config: configuration.Config) -> Report:
    outside = auditing.checkpoint_path(config)
    return logfile.verify(logfile.place(config), outside, auditing.notary(config).verifier)


def intents(config: configuration.Config) -> set[str]:
    """The keys of operations that the log has an intent of."""
    with opened(logfile.place(config)) as log:
        begun = {leaf.call_id for leaf in log.leaves() if leaf.record and leaf.record.kind == "intent"}
        begun |= {record.call_id for record in log.waiting() if record.kind == "intent"}
    return {name for call_id, name in operations(config) if call_id in begun}


def intended(config: configuration.Config) -> int:
    """How many calls the log says were about to run."""
    with opened(logfile.place(config)) as log:
        return sum(leaf.record is not None and leaf.record.kind == "intent" for leaf in log.leaves())


def operations(config: configuration.Config) -> list[tuple[str, str]]:
    if config.on_postgres:
        return asked(config.store, "SELECT call_id, key FROM holdfast.operation")
    with closing(sqlite3.connect(config.store_path)) as connection:
        return connection.execute("SELECT call_id, key FROM operation").fetchall()


@requirement("AUD-5", "AUD-1")
@pytest.mark.parametrize(
    ("kind", "points"), [("sqlite", POINTS), ("postgres", ("after claim", "before outcome"))]
)
async def test_after_a_kill_at_any_point_the_log_verifies_and_what_happened_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, points: tuple[str, ...]
) -> None:
    file = tmp_path / "holdfast.yaml"
    monkeypatch.chdir(ROOT)
    async with place(kind, tmp_path), counting(tmp_path / "effects") as effects:
        file.write_text(CONFIG.format(url_of(kind, tmp_path)))
        config = configuration.load(file)
        for name, value in told_of(effects).items():
            monkeypatch.setenv(name, value)
        for point in points:
            await die(point, file)
            report = verified(config)
            assert report.ok, said(report)
            happened = {key(point, f) for f in TOOLS if effects.counts()[key(point, f)]}
            assert happened <= intents(config)
        async with Gateway.open(config):
            pass  # takes what the dead left into the tree, and signs it
        report = verified(config)
        assert (report.ok, report.tail, report.waiting) == (True, 0, 0), said(report)


@pytest.mark.soak
@requirement("AUD-5", "AUD-1")
async def test_nothing_that_ran_in_a_storm_of_kills_is_missing_from_the_log(tmp_path: Path) -> None:
    async with counting(tmp_path / "effects") as effects:
        await Storm(STORM, tmp_path, effects).run()
        happened = {name for name, count in effects.counts().items() if count}
    config = configuration.load(tmp_path / "holdfast.yaml")
    assert happened <= intents(config)
    report = verified(config)
    assert report.ok, said(report)


# --- a full disk ------------------------------------------------------------------------------

Full = Callable[[Path], Any]


@contextmanager
def no_file_may_grow(database: Path) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    beside = [*database.parent.glob(f"{database.name}-wal"), *database.parent.glob("*-workers/*.records")]
    size = min(file.stat().st_size for file in beside)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def no_block_is_left(database: Path) -> Iterator[None]:
    ballast = database.with_name("ballast")
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()


@pytest.fixture(params=["limit", "tmpfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Full]]:
    """A folder, and what fills it up."""
    if request.param == "limit":
        yield tmp_path, no_file_may_grow
        return
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or not mounted(small):
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield small, no_block_is_left
    finally:
        subprocess.run(["umount", str(small)], check=True)


def mounted(folder: Path) -> bool:
    mount = shutil.which("mount")
    if mount is None:
        return False
    command = [mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Acts:
    """A write that may find the disk full on its way back."""

    def __init__(self) -> None:
        self.done = 0
        self.then: Callable[[], None] = lambda: None

    def tools(self) -> list[FunctionTool[..., Any]]:
        @tool(
            effect=Effect.LOW_RISK_INTERNAL,
            undo=Undo.EXACT,
            manifest=[("things", "UPDATE", "one")],
            idempotency={},
        )
        async def act() -> dict[str, int]:
            """Act."""
            self.done += 1
            self.then()
            return {"done": self.done}

        @tool(effect=Effect.READ_ONLY)
        async def look() -> dict[str, int]:
            """Look."""
            self.done += 1
            return {"done": self.done}

        return [act, look]


@asynccontextmanager
async def acting(folder: Path, acts: Acts) -> AsyncIterator[Gateway]:
    config = configuration.parse({"upstreams": {}}, folder=folder)
    clock = SystemClock()
    async with SqliteStore(config.store_path, clock) as store:
        upstreams = {"test": FunctionUpstream(acts.tools())}
        signs = auditing.notary(config)
        gateway = Gateway.assemble(config, store, upstreams, clock=clock, ids=RandomIds(), notary=signs)
        await gateway.prepare()
        try:
            yield gateway
        finally:
            await gateway.close()


async def call(gateway: Gateway, name: str, number: int) -> Observation:
    return await gateway.call(f"test.{name}", {}, key=f"k-{number}" if name == "act" else None, principal=ANA)


@requirement("AUD-5")
@pytest.mark.parametrize("name", ["act", "look"])
async def test_what_cannot_be_recorded_does_not_run(disk: tuple[Path, Full], name: str) -> None:
    folder, full = disk
    acts = Acts()
    async with acting(folder, acts) as gateway:
        for number in range(3):
            assert (await call(gateway, name, number)).status is Status.DONE
        with full(gateway.config.store_path):
            told = [await call(gateway, name, 10 + number) for number in range(6)]
        fitted = acts.done - 3  # the last block of a file may have room for the records of a read or two
        assert fitted == 0 if name == "act" else fitted < 4
        assert {one.status for one in told[fitted:]} == {Status.REFUSED}
        assert (await call(gateway, name, 20)).status is Status.DONE
    config = configuration.parse({"upstreams": {}}, folder=folder)
    report = verified(config)
    assert report.ok, said(report)
    assert intended(config) == acts.done


@requirement("AUD-5")
async def test_an_outcome_that_cannot_be_recorded_is_unknown(disk: tuple[Path, Full]) -> None:
    folder, full = disk
    acts = Acts()
    async with acting(folder, acts) as gateway:
        assert (await call(gateway, "act", 0)).status is Status.DONE
        path = gateway.config.store_path
        filled = full(path)
        acts.then = lambda: filled.__enter__()
        told = await call(gateway, "act", 1)
        filled.__exit__(None, None, None)
        acts.then = lambda: None
        assert acts.done == 2
        assert told.status is Status.UNKNOWN
    config = configuration.parse({"upstreams": {}}, folder=folder)
    report = verified(config)
    assert report.ok, said(report)
    assert "k-1" in intents(config)
