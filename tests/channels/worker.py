"""A process of its own around a store that others use too: `python -m tests.channels.worker KIND FOLDER ...`.

It begins when it reads a line. `ask` asks and dies at once; `start` asks and goes on; `send` sends until
there is nothing left.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from holdfast import Gateway
from holdfast.testing import ManualClock
from tests.approvals.bank import BEN, Bank, pay
from tests.approvals.opening import House
from tests.channels.bench import hook, told


async def main(kind: str, folder: str, url: str, mode: str, start: str) -> None:
    house = House(kind, Path(folder), ManualClock(float(start)))
    tree = told(Path(folder), {"ops": hook(url), "too": hook(f"{url}/too")})
    async with house.gateway(Bank(), config=tree) as gateway:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        if mode == "ask":
            gateway.start()
            assert (await pay(gateway)).approval is not None
            os.kill(os.getpid(), signal.SIGKILL)  # nothing that waits for the loop has run since
        elif mode == "start":
            gateway.start()
            assert (await pay(gateway)).approval is not None
            await asyncio.Event().wait()
        else:
            await send(gateway)


async def send(gateway: Gateway) -> None:
    while any(one.sent_at is None for one in await gateway.notices.list(BEN)):
        await gateway.notices.round()
    print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
