"""Submits one job after the other in processes that die at a point, and has others find out what came of it.

    python -m tests.jobs.dying STORE FOLDER 'during submit' 'after settle' ...

Every point costs two processes, forked from one that has imported everything. What became of each job is
printed as JSON.
"""

import asyncio
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from holdfast import Gateway
from holdfast.execution.runtime import Runtime
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.observation import Observation
from holdfast.model.operation import Operation
from holdfast.model.vocabulary import State
from holdfast.ports import Ledger, Ports, Settlement
from tests.chains.crashing import forked
from tests.chains.orders import FUSE
from tests.jobs.mill import did, mill

POINTS = (
    "during submit",  # the mill has it, and nobody here knows
    "before outcome",
    "after outcome",  # the job is written down
    "during look",
    "before settle",  # it has ended, and nobody here knows
    "after settle",
    "during stop",
)
STOPPED = ("during stop",)
PATIENCE_S = 60.0


class FragileLedger:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        submits = call.writes and call.tool.job is not None
        if submits:
            FUSE.reached("before outcome")
        ours = await self._ledger.finish(call, observation, state)
        if submits:
            FUSE.reached("after outcome")
        return ours

    async def settle(self, operation: Operation, settlement: Settlement) -> bool:
        if settlement.by == "job":
            FUSE.reached("before settle")
        ours = await self._ledger.settle(operation, settlement)
        if settlement.by == "job":
            FUSE.reached("after settle")
        return ours


def fragile(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
    return replace(ports, ledger=cast(Ledger, FragileLedger(ports.ledger))), runtime


async def errand(url: str, folder: Path, key: str, point: str) -> Observation:
    """One job, from wherever it is to its end."""
    async with mill(url, folder, fragile) as gateway, asyncio.timeout(PATIENCE_S):
        ann = gateway.identity.at_terminal("ann")
        short = 2_000 if point in STOPPED else 20_000
        seen = await gateway.call("mill.grind", {"corn": "rye"}, principal=ann, key=key, deadline_ms=short)
        if point in STOPPED and seen.pending is not None:
            await gateway.cancel(ann, seen.call_id)
        return await _ended(gateway, seen)


async def _ended(gateway: Gateway, seen: Observation) -> Observation:
    ann = gateway.identity.at_terminal("ann")
    while seen.pending is not None or seen.code is Code.KEY_IN_USE:
        seen = await gateway.call(
            "mill.grind", {"corn": "rye"}, principal=ann, key=seen.key, deadline_ms=10_000
        )
    return seen


def main(url: str, folder: Path, points: list[str]) -> None:
    for number, point in enumerate(points):
        key = f"{'endless' if point in STOPPED else 'k'}-{number}"

        async def dying(key: str = key, point: str = point) -> None:
            FUSE.point = point
            await errand(url, folder, key, point)

        async def finding_out(key: str = key, point: str = point) -> None:
            seen = await errand(url, folder, key, point)
            told = {"point": point, "status": seen.status, "code": seen.code, "data": seen.data}
            print(json.dumps({**told, "did": did(folder, key)}), flush=True)

        died = forked(dying)
        assert died == -signal.SIGKILL, f"{point}: not killed, but {died}"
        assert forked(finding_out) == 0, f"{point}: nobody found out"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
