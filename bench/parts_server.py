"""`holdfast serve` that knows where its CPU time goes.

Told SIGUSR1 it begins to count; told SIGUSR2 it writes what it counted to the file that `BENCH_PARTS` names.
With `BENCH_TWICE` every part is looked at twice, which tells what looking costs.
Parts are wrapped where they are defined, before anybody takes them from there.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.stopwatch import Stopwatch, calibrate

GATES = "resolve authorize arguments semantics policy replay state limits approval claim".split()
HTTP = "uvicorn.protocols.http.httptools_impl"
WATCHED: tuple[tuple[str, str], ...] = (
    ("http in", f"{HTTP}:HttpToolsProtocol.data_received"),
    ("http in", f"{HTTP}:RequestResponseCycle.receive"),
    ("http out", f"{HTTP}:RequestResponseCycle.send"),
    *((gate, f"holdfast.gates.{gate}:{gate}") for gate in GATES),
    ("verify", "holdfast.execution.verify:verify"),
    ("observe", "holdfast.execution.observe:observe"),
    ("run", "holdfast.execution.run:run"),
    ("upstream", "holdfast.upstreams.mcp.upstream:McpUpstream.invoke"),
    ("upstream", "holdfast.upstreams.http.connection:Connection.data_received"),
    ("begin", "holdfast.stores.sql.ledger:SqlLedger.begin"),
    ("finish", "holdfast.stores.sql.ledger:SqlLedger.finish"),
    ("store, on the loop", "holdfast.stores.sqlite.writer:SqliteWriter._turn"),
    ("store, on the loop", "holdfast.stores.sqlite.writer:SqliteWriter._answer"),
    ("store, on the loop", "holdfast.stores.sqlite.jotter:Jotter._turn"),
    ("telemetry", "holdfast.telemetry.watch:Watch.begun"),
    ("telemetry", "holdfast.telemetry.watch:Watch.ended"),
    ("life of a call", "holdfast.lifecycle:live"),
    ("receive", "holdfast.lifecycle:receive"),
    ("propose", "holdfast.gateway.gateway:Gateway.propose"),
)
"""Part, and what belongs to it; in this order, so that tuples and defaults hold what is watched."""
WRITER = "holdfast-writer"


def watch(stopwatch: Stopwatch) -> list[str]:
    """Wraps every part; those that are not where they were thought to be."""
    missing = []
    for part, place in WATCHED:
        home, _, path = place.partition(":")
        try:
            owner: Any = import_module(home)
            *outer, name = path.split(".")
            for step in outer:
                owner = getattr(owner, step)
            function = getattr(owner, name)
        except (ImportError, AttributeError):
            missing.append(place)
            continue
        wrapped = stopwatch.around(part, function)
        setattr(owner, name, wrapped)
        _everywhere(function, wrapped)
    return missing


def _everywhere(function: Callable[..., Any], wrapped: Callable[..., Any]) -> None:
    for module in [m for name, m in sys.modules.items() if name.startswith("holdfast")]:
        for name, value in list(vars(module).items()):
            if value is function:
                setattr(module, name, wrapped)


class Watched:
    """The application, whose time is the protocols'."""

    def __init__(self, app: Any, stopwatch: Stopwatch) -> None:
        async def serve(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)

        self._app, self._serve = app, stopwatch.around("protocol", serve)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._serve(scope, receive, send)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


class Report:
    """Counts from one signal to the other."""

    def __init__(self, stopwatch: Stopwatch, missing: list[str], path: Path) -> None:
        self._stopwatch, self._missing, self._path = stopwatch, missing, path
        self._began = self._threads()

    def begin(self, *_: object) -> None:
        self._began = self._threads()
        self._stopwatch.reset()

    def end(self, *_: object) -> None:
        stopwatch, now = self._stopwatch, self._threads()
        stopwatch.leave(stopwatch.part)
        costs = calibrate()  # now, among the same neighbours
        threads = {name: now[name] - self._began.get(name, 0) for name in now}
        kept = {
            "calls": stopwatch.parts["receive"].calls // (2 if stopwatch.twice else 1),
            "spent": stopwatch.spent(),
            "looking": stopwatch.looking(costs),
            "store": threads.pop(WRITER, 0),
            "others": threads["all"] - threads["loop"] - (now.get(WRITER, 0) - self._began.get(WRITER, 0)),
            "missing": self._missing,
        }
        partial = self._path.with_suffix(".part")
        partial.write_text(json.dumps(kept))
        partial.rename(self._path)

    def _threads(self) -> dict[str, int]:
        writers = [t.ident for t in threading.enumerate() if t.name == WRITER and t.ident is not None]
        clocks = [time.clock_gettime_ns(time.pthread_getcpuclockid(ident)) for ident in writers]
        return {"all": time.process_time_ns(), "loop": time.thread_time_ns(), WRITER: sum(clocks)}


def main() -> None:
    stopwatch = Stopwatch(twice="BENCH_TWICE" in os.environ)
    missing = watch(stopwatch)
    from holdfast.servers import app

    build = app.build
    app.build = lambda *given, **named: Watched(build(*given, **named), stopwatch)  # type: ignore[assignment]
    report = Report(stopwatch, missing, Path(os.environ["BENCH_PARTS"]))
    signal.signal(signal.SIGUSR1, report.begin)
    signal.signal(signal.SIGUSR2, report.end)
    from holdfast.cli import main as holdfast

    holdfast()


if __name__ == "__main__":
    main()
