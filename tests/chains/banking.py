"""Drives transactions in processes that die at a point, and has others finish them.

    python -m tests.chains.banking STORE FOLDER 'before give' 'during book~commit' ...

The bank is a database of its own, with transactions that end with the process that holds them. Every point
costs two processes; what became of each run is printed as JSON.
"""

import asyncio
import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any, cast

from holdfast import Effect, Gateway, Invocation, Undo, tool
from holdfast import config as configuration
from holdfast.chains.reading import read
from holdfast.gateway.storing import store_of
from holdfast.gateway.wiring import Store
from holdfast.model.function import FunctionTool
from holdfast.model.run import Run
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.chains.crashing import LOOK_S, PATIENCE_S, forked, fragile
from tests.chains.orders import CONFIG, FUSE, TIMEOUT_MS, Embedded, ann
from tests.soak.effects import name_of

TRANSACTION = ("book", "give", "take", "book~commit")
POINTS = tuple(f"{when} {step}" for step in TRANSACTION for when in ("before", "during", "after"))
BANK = "HOLDFAST_TEST_BANK"
MADE = """
CREATE TABLE IF NOT EXISTS did (run TEXT, what TEXT);
CREATE TABLE IF NOT EXISTS ended (name TEXT);
"""
OPEN: dict[str, sqlite3.Connection] = {}


def bank() -> sqlite3.Connection:
    opened = sqlite3.connect(os.environ[BANK], isolation_level=None, check_same_thread=False)
    opened.executescript(MADE)
    return opened


def did(folder: Path, run_id: str) -> list[str]:
    """What is in the bank of a run, in no order."""
    os.environ[BANK] = str(folder / "bank.db")
    found = bank().execute("SELECT what FROM did WHERE run = ?", (run_id,)).fetchall()
    return sorted(what for (what,) in found)


def _write(**said: Any) -> Any:
    return {
        "effect": Effect.LOW_RISK_INTERNAL,
        "undo": Undo.EXACT,
        "manifest": [("account", "UPDATE", "one")],
        "idempotency": "none",
        "timeout_ms": TIMEOUT_MS,
        "probe": {
            "read": {"tool": "seen", "arguments": {"name": "=key"}},
            "committed": "state.times > 0",
            "result": "'done'",
            "settle_after_s": 0.0,
        },
        **said,
    }


def _session(role: str) -> dict[str, str]:
    return {"name": "books", "role": role, "handle": "result" if role == "begin" else "books"}


def _named(invocation: Invocation) -> tuple[str, str]:
    run_id, _, step = name_of(invocation.key).partition(".")
    return run_id, step


@tool(effect=Effect.READ_ONLY)
async def seen(name: str) -> dict[str, int]:
    """Look up whether something happened.

    Args:
        name: the key of the operation
    """
    named = name_of(name)
    return {"times": len(bank().execute("SELECT 1 FROM ended WHERE name = ?", (named,)).fetchall())}


def _alone(name: str, change: str, **said: Any) -> FunctionTool[..., Any]:
    @tool(name=name, **_write(**said))
    async def do(invocation: Invocation) -> str:
        """Change something by itself."""
        own = bank()
        own.execute("BEGIN IMMEDIATE")
        own.execute(change, (_named(invocation)[0],))
        own.execute("INSERT INTO ended VALUES (?)", (name_of(invocation.key),))
        own.execute("COMMIT")
        return "done"

    return do


def _inside(name: str) -> FunctionTool[..., Any]:
    back = {"tool": f"un{name}", "arguments": {}}

    @tool(name=name, **_write(session=_session("step"), compensation=back))
    async def do(books: str, invocation: Invocation) -> str:
        """Change something in the open books.

        Args:
            books: the open books
        """
        run_id, step = _named(invocation)
        OPEN[books].execute("INSERT INTO did VALUES (?, ?)", (run_id, name))
        OPEN[books].execute("INSERT INTO ended VALUES (?)", (name_of(invocation.key),))
        FUSE.reached(f"during {step}")
        return "done"

    return do


@tool(**_write(session=_session("begin")))
async def begin(invocation: Invocation) -> str:
    """Open the books."""
    handle = f"books-{name_of(invocation.key)}"
    OPEN[handle] = bank()
    OPEN[handle].execute("BEGIN IMMEDIATE")
    FUSE.reached(f"during {_named(invocation)[1]}")
    return handle


@tool(**_write(session=_session("commit")))
async def commit(books: str, invocation: Invocation) -> str:
    """Close the books.

    Args:
        books: the open books
    """
    OPEN[books].execute("INSERT INTO ended VALUES (?)", (name_of(invocation.key),))
    OPEN.pop(books).execute("COMMIT")
    FUSE.reached(f"during {_named(invocation)[1]}")
    return "done"


@tool(**_write(session=_session("rollback")))
async def rollback(books: str) -> str:
    """Close the books as they were.

    Args:
        books: the open books
    """
    OPEN.pop(books).execute("ROLLBACK")
    return "done"


TOOLS: list[FunctionTool[..., Any]] = [
    *(seen, begin, commit, rollback),
    *(_inside(name) for name in ("give", "take")),
    *(
        _alone(f"un{name}", f"DELETE FROM did WHERE run = ? AND what = '{name}'")
        for name in ("give", "take", "note")
    ),
    _alone("note", "INSERT INTO did VALUES (?, 'note')", compensation={"tool": "unnote", "arguments": {}}),
]
CHAIN = {
    "chain": "transfer",
    "saga": True,
    "steps": [
        {"id": "note", "tool": "bank.note"},
        {
            "transaction": {
                "begin": {"id": "book", "tool": "bank.begin"},
                "steps": [{"id": "give", "tool": "bank.give"}, {"id": "take", "tool": "bank.take"}],
            }
        },
    ],
}


async def errand(url: str, folder: Path, key: str) -> Run:
    """One run, from wherever it is to its end."""
    os.environ[BANK] = str(folder / "bank.db")
    config = configuration.parse({**CONFIG, "store": url}, folder=folder)
    async with store_of(config, SystemClock()) as store:
        ports: dict[str, Any] = {"clock": store.clock, "ids": RandomIds(), "adapt": fragile}
        kept = cast(Store, Embedded(store, slots=None))
        gateway = Gateway.assemble(config, kept, {"bank": FunctionUpstream(TOOLS)}, **ports)
        try:
            await gateway.prepare()
            run = await gateway.chains.start(ann(gateway), read(CHAIN), {}, key)
            async with asyncio.timeout(PATIENCE_S):
                return await _ended(gateway, run)
        finally:
            await gateway.close()


async def _ended(gateway: Gateway, run: Run) -> Run:
    while not run.state.over:
        run = await gateway.chains.wait(ann(gateway), run.id, LOOK_S)
        if run.waits_for:  # for an outcome: housekeeping finds it out
            await gateway.tidy()
            await asyncio.sleep(LOOK_S)  # the time of the dead process's call must pass
    return run


def main(url: str, folder: Path, points: list[str]) -> None:
    for number, point in enumerate(points):
        key = f"k-{number}"

        async def dying(key: str = key, point: str = point) -> None:
            FUSE.point = point
            await errand(url, folder, key)

        async def finishing(key: str = key, point: str = point) -> None:
            run = await errand(url, folder, key)
            told = {"point": point, "state": run.state, "did": did(folder, run.id), "why": run.why}
            print(json.dumps(told), flush=True)

        print(json.dumps({"point": point, "died": forked(dying)}), flush=True)
        forked(finishing)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
