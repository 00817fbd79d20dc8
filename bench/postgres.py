"""Durable writes on PostgreSQL beside their floor: `python -m bench.postgres`, about two minutes.

One and four processes, 32 calls under way in each, fsync on, every record sequenced. Compared in turns, in
one run: bare rows in two commits (the floor), the ledger's begin and finish, and whole calls.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from bench.audit import audit
from bench.floor_postgres import SCHEMA, PostgresFloor, Sizes
from bench.kept import keep, machine
from holdfast import Gateway, Principal, lifecycle
from holdfast.model.call import Call, Proposal
from holdfast.model.observation import Observation, Status
from holdfast.model.vocabulary import State
from holdfast.ports import Begun
from tests.postgres import Postgres

AGENT = Principal(user="ana", agent="bench", scopes=frozenset({"**"}), trust=60)
AT_ONCE = 32
SECONDS = 4.0
ROUNDS = 3
KINDS = ("floor", "ledger", "call")
SEQUENCE_S = 0.5

Flow = Callable[[str], Awaitable[Any]]


def configured(folder: Path, url: str) -> Path:
    said = {
        "store": url,
        "upstreams": {"b": {"functions": "bench.tools:TOOLS"}},
        "limits": {"ingress": {"rate": 1e6, "burst": 1e6}},
        "telemetry": {"level": "error"},
    }
    path = folder / "holdfast.yaml"
    path.write_text(json.dumps(said))
    return path


def proposed(gateway: Gateway, key: str) -> Call:
    said = {"item": key, "colour": "blue"}
    proposal = Proposal(tool="b.mark", arguments=said, principal=AGENT, key=key)
    return lifecycle.receive(proposal, gateway._ports)


@asynccontextmanager
async def ledger(gateway: Gateway) -> Any:
    """Only what is durable of a call: it was let through by every gate but the last before."""
    ports = gateway._ports
    admitted: asyncio.Queue[Call] = asyncio.Queue()

    async def admit(key: str) -> None:
        call = proposed(gateway, key)
        await lifecycle.admit(call, ports, lifecycle.GATES[:-1])
        admitted.put_nowait(call)

    async def flow(key: str) -> None:
        call = admitted.get_nowait()  # raises QueueEmpty when all were run
        begun = await ports.ledger.begin(call)
        assert isinstance(begun, Begun)
        call.operation = begun.operation
        done = Observation(call_id=call.id, tool="b.mark", status=Status.DONE, data={"marked": key})
        assert await ports.ledger.finish(call, done, State.COMMITTED)

    yield admit, flow


async def run(kind: str, url: str, config: Path, name: str, sizes: Sizes) -> None:
    """One process: says when it is ready, starts when told, says how many it has done."""
    if kind == "floor":
        floor = PostgresFloor(url, name, sizes)
        await floor.open()
        await timed(floor.flow, name)
        await floor.close()
        return
    async with Gateway.open(config) as gateway:
        if kind == "call":
            said = {"colour": "blue"}
            await timed(
                lambda key: gateway.call("b.mark", {"item": key, **said}, principal=AGENT, key=key), name
            )
            return
        async with ledger(gateway) as (admit, flow):
            for number in range(6_000):
                await admit(f"{name}-{number}")
            await timed(flow, name)


async def timed(flow: Flow, name: str) -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began, done, cpu = time.perf_counter(), 0, time.process_time()

    async def worker(number: int) -> None:
        nonlocal done
        turn = 0
        while time.perf_counter() - began < SECONDS:
            try:
                await flow(f"{name}-{number}-{turn}")
            except asyncio.QueueEmpty:
                return
            turn += 1
            done += 1

    await asyncio.gather(*(worker(number) for number in range(AT_ONCE)))
    took = time.perf_counter() - began
    print(json.dumps({"rate": done / took, "done": done, "cpu": time.process_time() - cpu}), flush=True)


def together(kind: str, processes: int, url: str, config: Path, tag: str, sizes: str) -> tuple[float, float]:
    """Calls per second of all of them, and CPU microseconds of their processes per call."""
    command = [sys.executable, "-m", "bench.postgres", kind, url, str(config)]
    crew = [
        subprocess.Popen(
            [*command, f"{tag}-{number}", sizes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for one in crew:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in crew:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    said = [json.loads(one.communicate(timeout=60)[0].splitlines()[-1]) for one in crew]
    done = sum(answer["done"] for answer in said)
    return sum(answer["rate"] for answer in said), sum(answer["cpu"] for answer in said) / done * 1e6


async def measured_sizes(url: str, config: Path) -> str:
    """The rows of one real call, by their length."""
    async with Gateway.open(config) as gateway:
        await gateway.call("b.mark", {"item": "size", "colour": "blue"}, principal=AGENT, key="size")
    connection = await asyncpg.connect(url)
    await connection.execute("SET holdfast.tenant = '*'")
    row = await connection.fetchrow(
        "SELECT length(payload), length(outcome) FROM holdfast.operation WHERE key = 'size'"
    )
    bodies = await connection.fetch(
        "SELECT length(body) FROM holdfast.record WHERE kind IN ('intent', 'outcome') ORDER BY kind"
    )
    await connection.execute(SCHEMA)
    await connection.close()
    assert row is not None
    return ",".join(str(size) for size in (*row, *(body[0] for body in bodies[:2])))


def compared(processes: int, url: str, config: Path, sizes: str) -> list[dict[str, Any]]:
    """A line for each kind, with its share of the floor."""
    rates: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for number in range(ROUNDS):
        for kind in KINDS:
            rates[kind].append(together(kind, processes, url, config, f"{kind}{processes}{number}", sizes))
    floor = statistics.median(rate for rate, _ in rates["floor"])
    lines = []
    for kind in KINDS:
        rate, cpu = (statistics.median(figures) for figures in zip(*rates[kind], strict=True))
        print(f"{NAMES[kind]:<24}{processes:>10}{rate:>10.0f}{cpu:>9.0f}{rate / floor:>14.0%}")
        line = {"what": NAMES[kind], "processes": processes, "per_second": rate, "cpu_us": cpu}
        lines.append({**line, "of_floor": rate / floor})
    return lines


def main() -> None:
    print(machine())
    with tempfile.TemporaryDirectory() as folder, Postgres(durable=True) as server:
        config = configured(Path(folder), server.url)
        sizes = asyncio.run(measured_sizes(server.url, config))
        print(f"payload, outcome, intent and outcome records: {sizes} bytes; {AT_ONCE} at once per process")
        print(f"{'':<24}{'processes':>10}{'writes/s':>10}{'CPU us':>9}{'of the floor':>14}")
        lines = [line for processes in (1, 4) for line in compared(processes, server.url, config, sizes)]
    keep("postgres", at_once=AT_ONCE, sizes=sizes, lines=lines)
    with Postgres(durable=True) as server:
        asyncio.run(audit(store=server.url))


NAMES = {"floor": "bare rows, two commits", "ledger": "ledger begin + finish", "call": "whole calls"}

if __name__ == "__main__":
    if len(sys.argv) > 2:
        _, kind, url, config, name, lengths = sys.argv
        uvloop.run(run(kind, url, Path(config), name, Sizes(*map(int, lengths.split(",")))))
    else:
        main()
