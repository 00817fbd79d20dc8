"""`holdfast sessions` for the bank of `examples/database`: every command is a process of its own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.cli.app import run
from holdfast.config import load
from tests.requirements import requirement
from tests.stored import url_of
from tests.upstream_sessions.bank import EXAMPLE, Bank, bank


class Terminal:
    """Runs commands on the bank's configuration, one after the other."""

    def __init__(self, server: Bank, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.bank, self._config, self._capsys = server, config, capsys

    async def __call__(self, *words: str, ends: int = 0) -> Any:
        told = await self.said(*words, "--json", ends=ends)
        return orjson.loads(told)

    async def said(self, *words: str, ends: int = 0) -> str:
        self._capsys.readouterr()
        code = await asyncio.to_thread(run, [*words, "--config", str(self._config)])
        told = self._capsys.readouterr()
        assert code == ends, told
        return told.out

    async def call(self, tool: str, key: str, **arguments: Any) -> Any:
        given = orjson.dumps(arguments).decode()
        return (await self("call", f"bank.{tool}", "--key", key, "--args", given))["data"]


@pytest.fixture
async def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Terminal]:
    async with bank(tmp_path) as server:
        yield Terminal(server, server.configured(url_of("sqlite", tmp_path)), capsys)


@requirement("EXE-8", "NAM-1")
async def test_a_session_is_begun_listed_committed_shown_and_undone(terminal: Terminal) -> None:
    assert "no session was begun" in await terminal.said("sessions", "list")
    tx = (await terminal.call("begin", "t-1"))["transaction"]
    await terminal.call("enter", "a", transaction=tx, account="ana", cents=500)
    await terminal.call("enter", "b", transaction=tx, account="bob", cents=700)
    [listed] = (await terminal("sessions", "list"))["sessions"]
    assert (listed["id"], listed["state"], listed["namespace"]) == (tx, "OPEN", "bank")
    await terminal.call("commit", "c", transaction=tx)
    assert terminal.bank.accounts() == {"ana": 500, "bob": 700}
    told = await terminal.said("sessions", "show", tx)
    assert f"COMMITTED  {tx}  bank/transaction" in told
    assert told.count("undone by bank.correct") == 2
    undone = await terminal("sessions", "undo", tx)
    assert undone["state"] == "UNDONE"
    assert [one["number"] for one in undone["undone"]] == [1, 0]
    assert terminal.bank.accounts() == {"ana": 0, "bob": 0}


def test_the_example_has_a_configuration_that_names_its_parts() -> None:
    said = load(EXAMPLE / "holdfast.yaml")
    assert [said.upstreams["bank"].contracts] == ["bank.yaml"]
    assert {path.name for path in EXAMPLE.glob("*.*")} >= {"README.md", "bank.py", "bank.yaml"}


@requirement("EXE-8", "NAM-1")
async def test_a_session_is_rolled_back_from_a_terminal(terminal: Terminal) -> None:
    tx = (await terminal.call("begin", "t-1"))["transaction"]
    await terminal.call("enter", "a", transaction=tx, account="ana", cents=500)
    told = await terminal.said("sessions", "rollback", tx)
    assert f"ROLLED_BACK  {tx}" in told
    assert terminal.bank.accounts() == {}
    assert (await terminal("sessions", "list"))["sessions"][0]["state"] == "ROLLED_BACK"
    await terminal.said("sessions", "undo", tx, ends=1)
    await terminal.said("sessions", "settle", tx, "committed", ends=3)  # nobody here is an operator
    await terminal.said("sessions", "settle", tx, "committed", "--as", "olga", ends=1)
    await terminal.said("sessions", "settle", tx, "lost", ends=2)
