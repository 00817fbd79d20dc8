"""Is everything still true when the Nth statement, socket operation or audit write fails, for every N?"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.config import Config
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import SystemClock
from tests.faults.errand import Errand
from tests.faults.proxy import Cut, Lines, Proxy, Side
from tests.faults.statements import AUDIT, WAYS, Fuse, Way, failing
from tests.faults.triggers import AUDIT as AUDIT_TABLES
from tests.faults.triggers import failing_write
from tests.requirements import requirement
from tests.soak.effects import Effects, counting
from tests.stored import DURABLE, place, url_of

SOME = range(1, 201, 7)
FEW = range(1, 201, 19)
ALL = range(1, 201)
AT_ONCE = 4
"""Errands at a time: they wait for the disk more than they compute."""
LASTING = 3
"""Statements that fail after the Nth: enough for whoever looks what became of it."""
OPERATIONS: tuple[Side | Literal["connection"], ...] = ("server", "connection", "client")
"""An effect is a connection, a request and an answer."""
CUTS: tuple[tuple[Side, bool], ...] = (("client", False), ("client", True), ("server", False))

Run = Callable[[str, Path, int, Effects], Awaitable[list[str]]]


async def failing_statement(
    kind: str,
    folder: Path,
    number: int,
    counted: Effects,
    *,
    way: Way | None = None,
    lasting: int | None = None,
) -> list[str]:
    if kind == "postgres":
        return await _failing_write(folder, number, counted, ())
    more = LASTING * (number % 2) if lasting is None else lasting
    return await _failing_statement(folder, Fuse(number, way or WAYS[number % 3], lasting=more), counted)


async def failing_record(
    kind: str, folder: Path, number: int, counted: Effects, *, way: Way | None = None
) -> list[str]:
    if kind == "postgres":
        return await _failing_write(folder, number, counted, AUDIT_TABLES)
    return await _failing_statement(folder, Fuse(number, way or WAYS[number % 3], AUDIT), counted)


async def _failing_statement(folder: Path, fuse: Fuse, counted: Effects) -> list[str]:
    def store(config: Config) -> SqliteStore:
        return SqliteStore(config.store_path, SystemClock(), connect=failing(fuse))

    async def blown() -> bool:
        return fuse.blown

    def mend() -> None:
        fuse.over = True

    name, url = f"{fuse.way.replace(' ', '-')}-{fuse.number}", url_of("sqlite", folder)
    errand = Errand(folder, name, url, counted, blown, open_store=store, mend=mend)
    return [f"{fault} (failed: {fuse.what})" for fault in await errand.run()]


async def _failing_write(folder: Path, number: int, counted: Effects, tables: tuple[str, ...]) -> list[str]:
    url = url_of("postgres", folder)
    async with failing_write(url, number, tables) as writes:
        return await Errand(folder, f"write-{number}", url, counted, writes.failed).run()


async def failing_socket(kind: str, folder: Path, number: int, counted: Effects) -> list[str]:
    """Of a tool, to where it acts."""
    operation = OPERATIONS[number % 3]
    async with Proxy(("127.0.0.1", counted.port), Lines).open() as proxy:
        proxy.cut = Cut((number + 2) // 3, operation)
        name, url = f"{operation}-{number}", url_of(kind, folder)
        return await Errand(folder, name, url, counted, proxy.broke, port=lambda: proxy.port).run()


async def failing_link(
    kind: str, folder: Path, number: int, counted: Effects, *, cut: tuple[Side, bool] | None = None
) -> list[str]:
    """Between the gateway and its database."""
    side, after = cut or CUTS[number % 3]
    whole = urlsplit(url_of(kind, folder))
    [host] = parse_qs(whole.query)["host"]
    with Proxy(Path(host, ".s.PGSQL.5432")).apart() as proxy:
        proxy.cut = Cut(number, side, after)
        through = f"postgresql://{whole.username}@127.0.0.1:{proxy.port}{whole.path}?sslmode=disable"
        name = f"{side}-{'after' if after else 'before'}-{number}"
        errand = Errand(folder, name, whole.geturl(), counted, proxy.broke, failing_store=through)
        return await errand.run()


async def every(kind: str, folder: Path, numbers: Iterable[int], run: Run) -> list[str]:
    """Each on a fresh store; everything that is not as it must be."""
    free, found = asyncio.Semaphore(AT_ONCE), list[str]()

    async def one(number: int, counted: Effects) -> None:
        own = folder / str(number)
        async with free:
            own.mkdir()
            async with place(kind, own):
                found.extend(await run(kind, own, number, counted))
            shutil.rmtree(own)

    async with counting(folder / "effects") as counted, asyncio.TaskGroup() as group:
        for number in numbers:
            group.create_task(one(number, counted))
    return found


SHORTLY = ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)]
"""The soak has every number of them on both."""


@requirement("IDM-4", "AUD-5", "DEC-1")
@pytest.mark.parametrize("kind", SHORTLY)
async def test_no_statement_that_fails_loses_or_doubles_an_effect(kind: str, tmp_path: Path) -> None:
    found = await every(kind, tmp_path, SOME, failing_statement)
    assert not found, "\n".join(found)


@requirement("AUD-1", "AUD-5")
@pytest.mark.parametrize("kind", DURABLE)
async def test_no_audit_write_that_fails_leaves_an_effect_without_a_record(kind: str, tmp_path: Path) -> None:
    found = await every(kind, tmp_path, FEW, failing_record)
    assert not found, "\n".join(found)


@requirement("IDM-4", "IDM-5")
@pytest.mark.parametrize("kind", SHORTLY)
async def test_no_socket_of_a_tool_that_breaks_loses_or_doubles_an_effect(kind: str, tmp_path: Path) -> None:
    found = await every(kind, tmp_path, FEW, failing_socket)
    assert not found, "\n".join(found)


@requirement("IDM-4", "AUD-5", "DEC-1")
async def test_no_connection_to_the_database_that_breaks_loses_or_doubles_an_effect(tmp_path: Path) -> None:
    found = await every("postgres", tmp_path, SOME, failing_link)
    assert not found, "\n".join(found)


@pytest.mark.soak
@requirement("IDM-4", "AUD-5", "DEC-1")
@pytest.mark.parametrize(
    ("kind", "way", "lasting"),
    [*(("sqlite", way, lasting) for way in WAYS for lasting in (0, LASTING)), ("postgres", None, 0)],
)
async def test_every_statement_may_fail_up_to_the_two_hundredth(
    kind: str, way: Way | None, lasting: int, tmp_path: Path
) -> None:
    found = await every(kind, tmp_path, ALL, partial(failing_statement, way=way, lasting=lasting))
    assert not found, "\n".join(found)


@pytest.mark.soak
@requirement("AUD-1", "AUD-5")
@pytest.mark.parametrize(("kind", "way"), [*(("sqlite", way) for way in WAYS), ("postgres", None)])
async def test_every_audit_write_may_fail_up_to_the_two_hundredth(
    kind: str, way: Way | None, tmp_path: Path
) -> None:
    found = await every(kind, tmp_path, ALL, partial(failing_record, way=way))
    assert not found, "\n".join(found)


@pytest.mark.soak
@requirement("IDM-4", "IDM-5")
@pytest.mark.parametrize("numbers", [ALL[:100], ALL[100:]], ids=["first hundred", "second hundred"])
@pytest.mark.parametrize("kind", DURABLE)
async def test_every_socket_operation_of_a_tool_may_break_up_to_the_two_hundredth(
    kind: str, numbers: range, tmp_path: Path
) -> None:
    found = await every(kind, tmp_path, numbers, failing_socket)
    assert not found, "\n".join(found)


@pytest.mark.soak
@requirement("IDM-4", "AUD-5", "DEC-1")
@pytest.mark.parametrize("cut", CUTS, ids=str)
async def test_every_message_from_and_to_the_database_may_be_the_last_up_to_the_two_hundredth(
    cut: tuple[Side, bool], tmp_path: Path
) -> None:
    found = await every("postgres", tmp_path, ALL, partial(failing_link, cut=cut))
    assert not found, "\n".join(found)
