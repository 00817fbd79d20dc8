"""Is a session as good as its upstream says, whatever becomes of the processes before it?

A real MCP server over HTTP with real transactions, and real gateway processes that are killed.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Gateway, Observation, Principal, Status
from holdfast.model.upstream_session import SessionState
from tests.polling import FELT_S, pause
from tests.requirements import requirement
from tests.stored import DURABLE, place, rows, url_of
from tests.upstream_sessions.bank import bank, worker
from tests.upstream_sessions.worker import ADA

OLGA = Principal(user="olga", agent="cli", roles=frozenset({"operator"}))

pytestmark = pytest.mark.parametrize("kind", DURABLE)


async def call(gateway: Gateway, tool: str, key: str | None = None, **arguments: Any) -> Observation:
    return await gateway.call(f"bank.{tool}", arguments, principal=ADA, key=key)


async def state(gateway: Gateway, session: str) -> SessionState:
    return (await gateway.upstream_sessions.look(OLGA, session)).session.state


async def until(gateway: Gateway, session: str, wanted: SessionState) -> None:
    """Another process has tidied up."""
    async with asyncio.timeout(2 * FELT_S):
        while await state(gateway, session) is not wanted:
            await gateway.tidy()
            await pause()


async def dispatched(kind: str, folder: Path, key: str) -> None:
    """The call of this key is on its way upstream: its claim is durable."""
    asked: Callable[[], list[tuple[Any, ...]]] = lambda: rows(  # noqa: E731
        kind, folder, f"SELECT state FROM {{}}operation WHERE key = '{key}'"
    )
    async with asyncio.timeout(FELT_S):
        while await asyncio.to_thread(asked) != [("dispatched",)]:
            await pause()


@requirement("EXE-8")
async def test_another_process_goes_on_where_a_killed_one_was(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path), bank(tmp_path) as server:
        config = server.configured(url_of(kind, tmp_path))
        async with worker(config, "nothing") as killed:
            tx = killed.session
            await killed.kill()
        async with Gateway.open(config) as gateway:
            replayed = await call(gateway, "enter", "ana", transaction=tx, account="ana", cents=500)
            assert (replayed.status, replayed.replayed) == (Status.DONE, True)
            await call(gateway, "enter", "bob", transaction=tx, account="bob", cents=700)
            assert server.accounts() == {}
            done = await call(gateway, "commit", "commit", transaction=tx)
            assert done.status is Status.DONE
            assert server.accounts() == {"ana": 500, "bob": 700}


@requirement("EXE-8")
async def test_a_process_killed_in_a_step_leaves_nothing_behind(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path), bank(tmp_path) as server:
        config = server.configured(url_of(kind, tmp_path))
        async with worker(config, "enter") as killed:
            tx = killed.session
            server.stop()
            killed.go_on()
            await dispatched(kind, tmp_path, "bob")
            await killed.kill()
        server.go_on()  # whatever has reached it is done now, in the transaction
        async with Gateway.open(config) as gateway:
            await until(gateway, tx, SessionState.ROLLED_BACK)
            assert server.accounts() == {}
            for key, account, cents in (("ana", "ana", 500), ("bob", "bob", 700)):
                seen = await call(gateway, "enter", key, transaction=tx, account=account, cents=cents)
                assert seen.code in (Code.CANCELLED, Code.STALE_STATE)
            late = await call(gateway, "commit", "commit", transaction=tx)
            assert late.code is Code.STALE_STATE
            assert server.accounts() == {}


@requirement("EXE-8")
async def test_a_process_killed_in_its_commit_leaves_a_question(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path), bank(tmp_path) as server:
        config = server.configured(url_of(kind, tmp_path))
        async with worker(config, "commit") as killed:
            tx = killed.session
            server.stop()
            killed.go_on()
            await dispatched(kind, tmp_path, "commit")
            await killed.kill()
        server.go_on()
        async with Gateway.open(config) as gateway:
            await until(gateway, tx, SessionState.UNKNOWN)
            for tool in ("commit", "rollback"):
                refused = await call(gateway, tool, f"another {tool}", transaction=tx)
                assert refused.code is Code.STALE_STATE
            asked = await call(gateway, "commit", "commit", transaction=tx)
            assert asked.code is Code.OUTCOME_UNKNOWN
            happened = "committed" if server.accounts() else "no-effect"
            await gateway.settle(OLGA, asked.call_id, happened, "looked into the book")  # type: ignore[arg-type]
            wanted = SessionState.COMMITTED if server.accounts() else SessionState.OPEN
            await until(gateway, tx, wanted)
