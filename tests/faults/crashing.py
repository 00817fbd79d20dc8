"""A server that kills itself at one exact point of a call's life.

    python -m tests.faults.crashing CONFIG 'after claim' 2

It prints its port and dies, by its own kill -9, when as many writes as asked for have reached the point. A
write that is there before the others waits for them.
"""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Any, cast

from holdfast import Gateway
from holdfast.execution.runtime import Runtime
from holdfast.model.call import Call
from holdfast.model.observation import Observation
from holdfast.model.vocabulary import State
from holdfast.ports import Attempt, Begun, Denied, Ledger, Ports, Taken, Upstream
from holdfast.servers.app import build
from tests.servers.serving import serving

POINTS = (
    "before claim",
    "after claim",
    "before dispatch",
    "after dispatch",
    "before outcome",
    "after outcome",
)


class Fuse:
    def __init__(self, point: str, writes: int) -> None:
        assert point in POINTS
        self._point = point
        self._missing = writes

    async def reached(self, point: str) -> None:
        if point != self._point:
            return
        self._missing -= 1
        if not self._missing:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.Event().wait()


class CrashingLedger:
    def __init__(self, ledger: Ledger, fuse: Fuse) -> None:
        self._ledger = ledger
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        if not call.writes:
            return await self._ledger.begin(call)
        await self._fuse.reached("before claim")
        begun = await self._ledger.begin(call)
        await self._fuse.reached("after claim")
        return begun

    async def finish(self, call: Call, observation: Observation, state: State | None) -> bool:
        if not call.writes:
            return await self._ledger.finish(call, observation, state)
        await self._fuse.reached("before outcome")
        ours = await self._ledger.finish(call, observation, state)
        await self._fuse.reached("after outcome")
        return ours


class CrashingUpstream:
    def __init__(self, upstream: Upstream, fuse: Fuse) -> None:
        self._upstream = upstream
        self._fuse = fuse
        self.concurrency = upstream.concurrency
        self.personal = False

    async def invoke(self, attempt: Attempt) -> Any:
        if attempt.key is None:
            return await self._upstream.invoke(attempt)
        await self._fuse.reached("before dispatch")
        answer = await self._upstream.invoke(attempt)
        await self._fuse.reached("after dispatch")
        return answer

    async def close(self) -> None:
        await self._upstream.close()


async def main(config: str, point: str, writes: int) -> None:
    fuse = Fuse(point, writes)

    def adapt(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
        ledger = cast(Ledger, CrashingLedger(ports.ledger, fuse))
        upstreams = {name: CrashingUpstream(upstream, fuse) for name, upstream in runtime.upstreams.items()}
        return replace(ports, ledger=ledger), replace(runtime, upstreams=upstreams)

    async with Gateway.open(config, adapt=adapt) as gateway, serving(build(gateway)) as served:
        print(served.port, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
