"""A process that drives runs with DBOS, as `holdfast serve` does, and can be told where to die.

    python -m tests.chains.driving STORE FOLDER '{"keys": ["k-1"], "point": "after charge"}'

It begins a run for each key, where it is told so `after` a file is there, then drives whatever is there until
all runs are over, and tells of them.
"""

import asyncio
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import CoroutineType
from typing import Any, cast

from holdfast import Gateway
from holdfast.model import defaults
from holdfast.model.errors import StoreError
from holdfast.model.run import Run
from holdfast.ports import Runs
from tests.chains.crashing import BARRIER, fragile
from tests.chains.orders import FUSE, acted, ann, saga, shop

TOLD = "these are all tasks"
LEASE_S = 1.5
SWEEP_S = 0.1
LOOK_S = 0.1
MOST = 1_000


class BreakingRuns:
    """Whoever takes a run up for the first time breaks."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._broken: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def take_up(self, tenant: str, run_id: str) -> Run | None:
        if run_id not in self._broken:
            self._broken.add(run_id)
            raise RuntimeError("broken")
        return await self._runs.take_up(tenant, run_id)


def tell_tasks() -> None:
    """Where everything here stands: for whoever finds out that something is stuck."""
    for task in asyncio.all_tasks():
        told, awaited = [task.get_name()], cast(Any, task.get_coro())
        while isinstance(awaited, CoroutineType):
            told.append(f"{awaited.cr_code.co_qualname}:{awaited.cr_frame and awaited.cr_frame.f_lineno}")
            awaited = awaited.cr_await
        print("task", *told, repr(awaited)[:200], file=sys.stderr)
    print(TOLD, file=sys.stderr, flush=True)


async def main(url: str, folder: Path, wish: dict[str, Any]) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell_tasks)
    FUSE.point = wish.get("point", "")
    BARRIER.points = {point: folder / point for point in wish.get("holds", ())}
    defaults.CHAIN_LEASE_S, defaults.SWEEP_S = wish.get("lease_s", LEASE_S), SWEEP_S
    chain = saga(**wish.get("chain", {}))
    runs = BreakingRuns if wish.get("breaks") else None
    async with shop(url, folder, embedded=False, runs=runs, adapt=fragile) as gateway:
        await gateway.chains.open()
        gateway.start()
        say(ready=True)
        while "after" in wish and not (folder / wish["after"]).exists():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(LOOK_S)
        for key in wish.get("keys", ()):
            run = await gateway.chains.start(ann(gateway), chain, {"item": wish.get("item", "tea")}, key)
            say(begun=run.id)
        if wish.get("leaves"):
            while not acted(folder, run.id):  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(LOOK_S / 10)
            return
        for run in await ended(gateway, wish.get("runs", len(wish.get("keys", ())))):
            did = acted(folder, run.id)
            say(run=run.id, key=run.key, state=run.state, did=did, version=run.version, waits=run.waits_for)


async def ended(gateway: Gateway, number: int) -> list[Run]:
    runs: list[Run] = []
    while True:
        with suppress(StoreError):  # it is away for a while
            runs = list(await gateway.chains.list(ann(gateway), MOST))
        if len(runs) >= number and all(run.state.over for run in runs):
            return sorted(runs, key=lambda run: run.key)
        await asyncio.sleep(LOOK_S)  # others may drive them, and tell nobody


def say(**told: Any) -> None:
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])))
