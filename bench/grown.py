"""Gateways in which one thing has grown: tools, policies, records of the log, open claims, halts, questions.

Each opens a gateway of its own on SQLite, with its size made before or right after it was opened.
"""

import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.tools import TOOLS
from holdfast import Effect, Gateway, Principal, tool
from holdfast.model.function import FunctionTool
from holdfast.records.chain import GENESIS, Chain, Record
from holdfast.stores.sql.engine import OPEN_CHAIN
from holdfast.stores.sqlite.connection import connect

AGENT = Principal(user="ana", agent="bench", scopes=frozenset({"**"}), trust=60)
PLENTY = 1_000_000
APPLICABLE = 10
"""Policies that look at the tool which is called, however many there are."""
OTHERS = 100
"""Tools that all other policies are about."""
Grown = Callable[[Path, int], AbstractAsyncContextManager[Gateway]]


def _other(number: int) -> FunctionTool[..., Any]:
    async def other(item: str, limit: int = 10) -> dict[str, str]:
        """Look up something else.

        Args:
            item: its number
            limit: how many lines to give at most
        """
        return {"item": item}

    other.__name__ = f"other{number}"
    return tool(effect=Effect.READ_ONLY)(other)


@asynccontextmanager
async def opened(folder: Path, others: int = 0, **more: Any) -> AsyncIterator[Gateway]:
    module = ModuleType("bench_grown")
    module.TOOLS = [*TOOLS, *(_other(number) for number in range(others))]  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    said = {
        "store": f"sqlite:///{folder / 'store.db'}",
        "upstreams": {"b": {"functions": "bench_grown:TOOLS", "concurrency": 64}},
        "limits": {"ingress": {"rate": PLENTY, "burst": PLENTY}},
        "telemetry": {"level": "error"},
        **more,
    }
    async with Gateway.open(said) as gateway:
        yield gateway


@asynccontextmanager
async def tools(folder: Path, size: int) -> AsyncIterator[Gateway]:
    async with opened(folder, max(0, size - len(TOOLS))) as gateway:
        yield gateway


@asynccontextmanager
async def policies(folder: Path, size: int) -> AsyncIterator[Gateway]:
    async with _ruled(folder, APPLICABLE, size) as gateway:
        yield gateway


@asynccontextmanager
async def applicable(folder: Path, size: int) -> AsyncIterator[Gateway]:
    """Policies that all look at the tool which is called."""
    async with _ruled(folder, size, size) as gateway:
        yield gateway


def _ruled(folder: Path, own: int, size: int) -> AbstractAsyncContextManager[Gateway]:
    rules = folder / "rules"
    rules.mkdir()
    (rules / "all.cedar").write_text("\n".join(_policies(own, size)))
    return opened(folder, OTHERS, policies=str(rules))


def _policies(own: int, size: int) -> Iterator[str]:
    for number in range(size):
        if number < own:
            whom = '[Action::"b.look", Action::"b.mark"]'
        else:
            whom = f'[Action::"b.other{number % OTHERS}"]'
        yield (
            f'@id("p{number}")\n@reason("rule {number}")\n'
            f"permit (principal, action in {whom}, resource)\n"
            f'when {{ context.args.item != "none-{number}" }};\n'
        )


@asynccontextmanager
async def records(folder: Path, size: int) -> AsyncIterator[Gateway]:
    """All in the tree already, as they are a moment after they were written."""
    async with opened(folder):
        pass
    file = connect(folder / "store.db")
    file.execute("PRAGMA synchronous = OFF")
    file.execute("BEGIN")
    file.execute(OPEN_CHAIN, ("w_grown", GENESIS))
    file.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _records(size))
    file.execute("COMMIT")
    file.close()
    async with opened(folder) as gateway:
        while await gateway._auditing.tidy():  # the part itself, not its schedule
            pass
        yield gateway


def _records(size: int) -> Iterator[Record]:
    """A chain that verifies; small bodies, so that ten millions fit on a disk."""
    chain = Chain("w_grown")
    for number in range(size):
        yield chain.append(
            "default", f"call_{number:016x}", "outcome", 1.8e9 + number, f'{{"nonce":"{number}"}}'
        )


_CLAIMS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO operation (tenant, principal, tool, key, call_id, version, contract_digest, fingerprint, state,
  epoch, nonce, owner, key_source, trace_id, created_at, updated_at, boot_id, deadline_boot, lease_boot,
  window_s, payload, attendant)
SELECT tenant, principal, tool, 'open-' || i, 'call_' || i, version, contract_digest, 'open-' || i,
  'dispatched', 1, 'n' || i, ?2, key_source, trace_id, created_at, updated_at, ?3, ?4 + 86400, ?4 + 86400,
  window_s, payload, attendant
FROM operation, n WHERE key = 'pattern'
"""


@asynccontextmanager
async def claims(folder: Path, size: int) -> AsyncIterator[Gateway]:
    """Under way, of a worker that lives: this one."""
    async with opened(folder) as gateway:
        await gateway.call("b.mark", {"item": "pattern"}, principal=AGENT, key="pattern")
        ledger: Any = gateway._ports.ledger
        boot = ledger._boot
        with _writing(folder) as file:
            file.execute(_CLAIMS, (size, ledger._workers.id, boot.id, boot.now()))
        yield gateway


@asynccontextmanager
async def halts(folder: Path, size: int) -> AsyncIterator[Gateway]:
    """Of tools that nobody calls."""
    async with opened(folder, size) as gateway:
        with _writing(folder) as file:
            rows = ((f"tool:b.other{number}",) for number in range(size))
            file.executemany("INSERT INTO halt VALUES ('*', ?, 'ana', 'not now', 0)", rows)
        yield gateway


def _writing(folder: Path) -> sqlite3.Connection:
    """As a block: one transaction."""
    file = sqlite3.connect(folder / "store.db", timeout=30)
    file.execute("PRAGMA synchronous = OFF")
    return file
