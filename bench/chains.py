"""What does a step of a chain cost, and what do runs that wait? `python -m bench.chains`, about a minute.

    python -m bench.chains --quick     fewer rounds, and 100 runs that wait

Embedded on SQLite and on PostgreSQL, each in a process of its own. A step is the difference between a run of
ten steps and one of one, so that what a run costs once does not count. Compared in turns, in one run and on
one database: steps of a chain (governed calls in a journal), the same governed calls without a chain, and
bare steps of DBOS, which write down their result and govern nothing. Then runs that wait for an approval: CPU
of a minute of housekeeping with none of them and with all of them, of the process and of the database server,
and of what DBOS polls beside it.
"""

import argparse
import asyncio
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

from bench.kept import keep, machine
from bench.processes import snapshot
from bench.tools import TOOLS
from holdfast import Effect, Floor, Gateway, Principal, Undo, tool
from holdfast import config as configuration
from holdfast.chains.declared import Chain
from holdfast.chains.engines import dbos as engine
from holdfast.chains.reading import read
from holdfast.model import defaults
from holdfast.model.run import Run, RunState
from tests.postgres import Postgres

AGENT = Principal(user="ana", agent="bench", scopes=frozenset({"**"}), trust=60)
STEPS = 10
ROUNDS, WAITING = 15, 1_000
QUICK_ROUNDS, QUICK_WAITING = 5, 100
OPEN = 40
"""Questions of one caller: no more than fifty may be open."""
IDLE_S = 5.0
MINUTE_S = 60.0


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    floor=Floor.OPERATOR,
    undo=Undo.EXACT,
    manifest=[("items", "UPDATE", "item")],
    idempotency={},
)
async def sign(item: str) -> str:
    """Sign for an item.

    Args:
        item: the item's number
    """
    return item


WITH_ONE_THAT_ASKS = [*TOOLS, sign]


def chain_of(steps: int) -> Chain:
    each = [{"id": f"s{n}", "tool": "b.mark", "with": {"item": "=input.item"}} for n in range(steps)]
    item = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
    return read({"chain": f"marks-{steps}", "input": item, "steps": each})


class Contest:
    """One way to take steps; each turn is timed with many steps and with one."""

    def __init__(self, name: str, go: Callable[[int], Awaitable[None]]) -> None:
        self.name = name
        self._go = go
        self.wall_ms: list[float] = []
        self.cpu_ms: list[float] = []

    async def turn(self) -> None:
        one, many = await self._timed(1), await self._timed(STEPS)
        self.wall_ms.append((many[0] - one[0]) / (STEPS - 1) * 1e3)
        self.cpu_ms.append((many[1] - one[1]) / (STEPS - 1) * 1e3)

    async def _timed(self, steps: int) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        await self._go(steps)
        return time.perf_counter() - wall, time.process_time() - cpu

    def told(self) -> dict[str, float]:
        """Without the first turn, which warms up."""
        found = {"wall_ms": self.wall_ms[1:], "cpu_ms": self.cpu_ms[1:]}
        return {name: round(statistics.median(seen), 3) for name, seen in found.items()}


def contests(gateway: Gateway, bare: Any, dbos: Any) -> list[Contest]:
    keys = count()

    async def chained(steps: int) -> None:
        key = f"k-{next(keys)}"
        run = await gateway.chains.start(AGENT, chain_of(steps), {"item": key}, key)
        while not engine._active:  # noqa: ASYNC110
            await asyncio.sleep(0.0005)  # DBOS writes it down first
        await asyncio.wait(engine._active)
        ended = await gateway._runs.get(run.tenant, run.id)
        assert ended is not None
        assert ended.state is RunState.COMPLETED, ended

    async def called(steps: int) -> None:
        for _ in range(steps):
            key = f"k-{next(keys)}"
            seen = await gateway.call("b.mark", {"item": key}, principal=AGENT, key=key)
            assert seen.status == "done", seen

    async def stepped(steps: int) -> None:
        handle = await dbos.DBOS.start_workflow_async(bare, f"k-{next(keys)}", steps)
        await handle.get_result()

    ways = {"chain": chained, "calls": called, "dbos": stepped}
    return [Contest(name, go) for name, go in ways.items()]


def bare_workflow(dbos: Any) -> Any:
    """As many steps as asked for, which do nothing and are written down."""

    @dbos.DBOS.step(name="bench.step")  # type: ignore[untyped-decorator]
    async def step(item: str) -> dict[str, str]:
        return {"item": item, "colour": "red"}

    @dbos.DBOS.workflow(name="bench.workflow")  # type: ignore[untyped-decorator]
    async def workflow(item: str, steps: int) -> None:
        for _ in range(steps):
            await step(item)

    return workflow


async def waiting(gateway: Gateway, number: int) -> None:
    """So many runs that wait for an approval, as their drivers left them."""
    for n in range(number):
        by = replace(AGENT, user=f"u{n // OPEN}")
        asked = await gateway.call("b.sign", {"item": f"w-{n}"}, principal=by, key=f"w-{n}")
        assert asked.approval is not None, asked
        run = Run(
            tenant=AGENT.tenant,
            id=f"run_waiting_{n}",
            chain="signed",
            version="1.0.0",
            key=f"w-{n}",
            declared={},
            input={},
            principal=by.id,
            wanted_by={},
        )
        taken = await gateway._runs.take_up(run.tenant, (await gateway._runs.begin(run)).id)
        assert taken is not None
        on = {"waits_for": f"approval {asked.approval.id!r}", "waits_on": asked.approval.id}
        await gateway._runs.journal(taken).move(RunState.RUNNING, **on)


async def tended(gateway: Gateway, database: int | None) -> dict[str, float]:
    """CPU of a minute of housekeeping, in ms: what it does for chains, and all of it; and the database's."""
    rounds = round(MINUTE_S / defaults.SWEEP_S)
    found = {}
    turns: dict[str, Callable[[], Awaitable[Any]]] = {"chains": gateway.chains.tend, "all": gateway.tidy}
    for name, turn in turns.items():
        await turn()
        start, served = time.process_time(), _serving_s(database)
        for _ in range(rounds):
            await turn()
        found[name] = round((time.process_time() - start) * 1e3, 1)
        found[f"{name}, database"] = round((_serving_s(database) - served) * 1e3, 1)
    return found


def _serving_s(database: int | None) -> float:
    """CPU of the database server and all its processes so far; an embedded one is part of our own."""
    if database is None:
        return 0.0
    seen = snapshot()
    return seen.cpu_s(seen.family(database))


async def idle() -> float:
    """CPU of a minute in which nothing happens, in ms: what DBOS polls."""
    start = time.process_time()
    await asyncio.sleep(IDLE_S)
    return round((time.process_time() - start) * MINUTE_S / IDLE_S * 1e3, 1)


async def measured(url: str, folder: str, rounds: int, number: int, database: int | None) -> dict[str, Any]:
    import dbos

    bare = bare_workflow(dbos)
    config = {
        "store": url,
        "upstreams": {"b": {"functions": "bench.chains:WITH_ONE_THAT_ASKS"}},
        "limits": {"ingress": {"rate": 1e6, "burst": 1e6}},
        "telemetry": {"level": "error"},
        "auth": {"people": {"ana": {"scopes": ["**"], "trust": 60}, "olga": {"roles": ["operator"]}}},
        "approvals": {"expire_s": 86_400},
    }
    async with Gateway.open(configuration.parse(config, folder=Path(folder))) as gateway:
        await gateway.chains.open()
        ways = contests(gateway, bare, dbos)
        for _ in range(rounds + 1):
            for way in ways:
                await way.turn()
        before, polled = await tended(gateway, database), await idle()
        await waiting(gateway, number)
        after, still = await tended(gateway, database), await idle()
        return {
            "step": {way.name: way.told() for way in ways},
            "minute_cpu_ms": {"none_waiting": before, "waiting": after},
            "polling_cpu_ms": {"none_waiting": polled, "waiting": still},
        }


def show(kind: str, found: dict[str, Any], number: int) -> None:
    step = found["step"]
    print(f"\n{kind:<34}{'wall ms':>9}{'CPU ms':>9}{'to DBOS':>9}")
    names = {"chain": "step of a chain", "calls": "governed call alone", "dbos": "bare step of DBOS"}
    for name, words in names.items():
        cost = step[name]
        ratio = cost["wall_ms"] / step["dbos"]["wall_ms"]
        print(f"  {words:<32}{cost['wall_ms']:>9.2f}{cost['cpu_ms']:>9.2f}{ratio:>9.2f}")
    for name, words in {"none_waiting": "no run waits", "waiting": f"{number:,} runs wait"}.items():
        minute, polled = found["minute_cpu_ms"][name], found["polling_cpu_ms"][name]
        told = f"chains {minute['chains']:.0f} ms, all of it {minute['all']:.0f} ms"
        served = f"{minute['chains, database']:.0f} and {minute['all, database']:.0f} ms"
        print(
            f"  a minute of housekeeping, {words}: {told}; database server {served}; polling {polled:.0f} ms"
        )


def apart(url: str, folder: str, asked: argparse.Namespace, database: int | None = None) -> dict[str, Any]:
    """In a process of its own: there is one DBOS in each."""
    command = [sys.executable, "-m", "bench.chains", "--store", url, "--folder", folder]
    command += ["--quick"] if asked.quick else []
    command += ["--database", str(database)] if database is not None else []
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[-3000:]
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return found


def main(asked: argparse.Namespace) -> None:
    logging.basicConfig(level=logging.ERROR)
    rounds, number = (QUICK_ROUNDS, QUICK_WAITING) if asked.quick else (ROUNDS, WAITING)
    if asked.store:
        print(json.dumps(uvloop.run(measured(asked.store, asked.folder, rounds, number, asked.database))))
        return
    print(machine())
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        found["sqlite"] = apart(f"sqlite:///{folder}/bench.db", folder, asked)
        show("embedded, SQLite", found["sqlite"], number)
    with tempfile.TemporaryDirectory() as folder, Postgres(durable=True) as server:
        found["postgres"] = apart(server.url, folder, asked, server.pid)
        show("PostgreSQL", found["postgres"], number)
    keep("chains-quick" if asked.quick else "chains", steps=STEPS, rounds=rounds, waiting=number, **found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="bench.chains", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and fewer runs that wait")
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--database", type=int, help=argparse.SUPPRESS)
    main(parser.parse_args())
