"""A gateway process of its own before the bank: says which session it has, and hangs where the test wants it.

python -m tests.upstream_sessions.worker holdfast.yaml enter
"""

import asyncio
import sys

from holdfast import Gateway, Principal

ADA = Principal(user="ada", agent="bot", scopes=frozenset({"**"}), trust=90)


async def work(config: str, last: str) -> None:
    async with Gateway.open(config) as gateway:
        begun = await gateway.call("bank.begin", {}, principal=ADA, key="begin")
        tx = begun.data["transaction"]
        entry = {"transaction": tx, "account": "ana", "cents": 500}
        await gateway.call("bank.enter", entry, principal=ADA, key="ana")
        print(tx, flush=True)
        await asyncio.to_thread(sys.stdin.readline)  # until the test has done what it wants to do first
        if last == "enter":
            entry = {"transaction": tx, "account": "bob", "cents": 700}
            await gateway.call("bank.enter", entry, principal=ADA, key="bob")
        elif last == "commit":
            await gateway.call("bank.commit", {"transaction": tx}, principal=ADA, key="commit")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
