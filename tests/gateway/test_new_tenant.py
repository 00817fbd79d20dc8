"""Is a tenant's first call like any other, though its key is made with it?"""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import Code, Effect, Gateway, Principal, Status, tool
from holdfast.testing import ManualClock, settle_loop
from tests.requirements import requirement
from tests.stored import DURABLE, durable, place

ANA = Principal(user="ana", agent="bot", tenant="default", scopes=frozenset({"**"}))
ACME = replace(ANA, tenant="acme")


@tool(effect=Effect.READ_ONLY)
async def look(number: int) -> int:
    """Look at a number."""
    return number


@contextmanager
def written_elsewhere(path: Path) -> Iterator[None]:
    """Another process commits, and its disk takes long."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


def opened(path: Path) -> AbstractAsyncContextManager[Gateway]:
    return Gateway.open(
        {"store": f"sqlite:///{path}", "upstreams": {"desk": {"functions": f"{__name__}:look"}}}
    )


@requirement("PPL-6", "AUT-6")
async def test_the_first_call_of_a_tenant_waits_for_another_process_as_any_other_does(path: Path) -> None:
    async with opened(path) as one:
        with written_elsewhere(path):
            first = asyncio.create_task(one.call("desk.look", {"number": 1}, principal=ACME))
            await settle_loop()
            assert not first.done()
        assert (await first).status is Status.DONE


@requirement("PPL-6", "AUT-6")
async def test_who_asks_for_a_tool_that_is_not_there_gets_no_key(path: Path) -> None:
    async with opened(path) as one:
        nowhere = await one.call("desk.nowhere", principal=ACME)
        assert nowhere.code is Code.TOOL_NOT_FOUND
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT tenant FROM tenant_key").fetchall() == [("*",)]


@requirement("PPL-6", "AUT-6")
async def test_a_key_that_is_there_is_read_while_another_process_writes(tmp_path: Path) -> None:
    clock = ManualClock()
    async with durable("sqlite", tmp_path, clock) as one, AsyncExitStack() as stack:
        await one.secrets.ready("acme")
        sealed = one.secrets.seal("acme", b"words")
        with written_elsewhere(tmp_path / "ledger.db"):
            two = await stack.enter_async_context(durable("sqlite", tmp_path, clock))
            await two.secrets.ready("acme")
            assert two.secrets.unseal("acme", sealed) == b"words"


@requirement("PPL-6", "AUT-6")
async def test_while_a_tenants_key_is_waited_for_others_are_answered(path: Path) -> None:
    async with opened(path) as one:
        assert (await one.call("desk.look", {"number": 1}, principal=ANA)).status is Status.DONE
        with written_elsewhere(path):
            first = asyncio.create_task(one.call("desk.look", {"number": 2}, principal=ACME))
            other = await one.call("desk.look", {"number": 3}, principal=ANA)
            assert (other.status, first.done()) == (Status.DONE, False)
        assert (await first).status is Status.DONE


@requirement("PPL-6", "AUT-6", "CON-6")
@pytest.mark.parametrize("kind", DURABLE)
async def test_processes_that_meet_a_tenant_at_once_agree_on_its_key(kind: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with (
        place(kind, tmp_path),
        durable(kind, tmp_path, clock) as one,
        durable(kind, tmp_path, clock) as two,
    ):
        rings = (one.secrets, two.secrets)
        await asyncio.gather(*(ring.ready("acme") for ring in rings * 5))
        sealed = [ring.seal("acme", b"words") for ring in rings]
        assert {ring.unseal("acme", words) for ring in rings for words in sealed} == {b"words"}
