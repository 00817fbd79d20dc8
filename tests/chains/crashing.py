"""Drives one saga after the other in processes that die at a point, and has others finish them.

    python -m tests.chains.crashing STORE FOLDER 'before charge' 'after charge~undo' ...

Every point costs two processes, forked from one that has imported everything: the first kills itself at its
point, the second begins the same run again with the same key. What became of each is printed as JSON.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from holdfast import Gateway
from holdfast.execution.runtime import Runtime
from holdfast.model.call import Call
from holdfast.model.observation import Observation
from holdfast.model.run import Run, RunState
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied, Journal, Ledger, Ports, Runs, Taken
from tests.chains.orders import BAD, FIVE, FUSE, acted, ann, saga, shop

TURN = "turn"
"""Not a step: the moment from which on a run goes back."""
STEPS = (*FIVE, TURN, *(f"{name}~undo" for name in reversed(FIVE)))
POINTS = tuple(f"{when} {step}" for step in STEPS for when in ("before", "after"))
DURING = tuple(f"during {step}" for step in STEPS if step != TURN)
"""It has happened outside, and this process never learnt so."""
PATIENCE_S = 60.0
"""For the slowest: a call whose process is gone is looked into when its time is over."""
LOOK_S = 0.05


class FragileLedger:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        if call.writes:
            FUSE.reached(f"before {call.proposal.step}")
            await BARRIER.reached("before", call)
        return await self._ledger.begin(call)

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        ours = await self._ledger.finish(call, observation, state)
        if call.writes:
            FUSE.reached(f"after {call.proposal.step}")
            await BARRIER.reached("after", call)
        return ours


class Barrier:
    """Where the first that comes by tells so, and waits for a file of that name; others go on."""

    def __init__(self) -> None:
        self.points: dict[str, Path] = {}

    async def reached(self, when: str, call: Call) -> None:
        file = self.points.pop(f"{when} {call.proposal.step}", None)
        if file is None:
            return
        print(json.dumps({"held": file.name, "of": call.proposal.task}), flush=True)
        while not file.exists():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(LOOK_S)


BARRIER = Barrier()


class FragileRuns:
    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    def journal(self, run: Run) -> "FragileJournal":
        return FragileJournal(self._runs.journal(run))


class FragileJournal:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def move(self, state: RunState, **said: Any) -> None:
        if state is RunState.COMPENSATING:
            FUSE.reached(f"before {TURN}")
        await self._journal.move(state, **said)
        if state is RunState.COMPENSATING:
            FUSE.reached(f"after {TURN}")


def fragile(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
    return replace(ports, ledger=cast(Ledger, FragileLedger(ports.ledger))), runtime


def goes_back(point: str) -> bool:
    return TURN in point or "~undo" in point


async def errand(url: str, folder: Path, key: str, point: str) -> Run:
    """One run, from wherever it is to its end."""
    async with shop(url, folder, runs=FragileRuns, adapt=fragile) as gateway:
        item = BAD if goes_back(point) else "tea"
        run = await gateway.chains.start(ann(gateway), saga(), {"item": item}, key)
        async with asyncio.timeout(PATIENCE_S):
            return await _ended(gateway, run)


async def _ended(gateway: Gateway, run: Run) -> Run:
    while not run.state.over:
        run = await gateway.chains.wait(ann(gateway), run.id, LOOK_S)
        if run.waits_for:  # for an outcome: housekeeping finds it out
            await gateway.tidy()
            await asyncio.sleep(LOOK_S)  # the time of the dead process's call must pass
    return run


def forked(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """How a process of its own ended; negative: by which signal."""
    child = os.fork()
    if not child:
        try:
            asyncio.run(work())
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(url: str, folder: Path, points: list[str]) -> None:
    for number, point in enumerate(points):
        key = f"k-{number}"

        async def dying(key: str = key, point: str = point) -> None:
            FUSE.point = point
            await errand(url, folder, key, point)

        async def finishing(key: str = key, point: str = point) -> None:
            run = await errand(url, folder, key, point)
            told = {"point": point, "state": run.state, "did": acted(folder, run.id), "rounds": run.round}
            print(json.dumps(told), flush=True)

        died = forked(dying)
        assert died == -signal.SIGKILL, f"{point}: not killed, but {died}"
        assert forked(finishing) == 0, f"{point}: not finished"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
