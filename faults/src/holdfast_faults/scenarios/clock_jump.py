"""Does a gateway forget what it did, or do it again, because its clock was set?"""

import asyncio

from holdfast_faults.arena import Arena

AHEAD_H = 25
BACK_H = -1


async def clock_jump(arena: Arena) -> None:
    try:
        with arena.in_mid_call():
            calls = arena.everybody()
            await arena.all_under_way()
            await arena.clock.jump(AHEAD_H)
            calls += arena.everybody(by=1)
            for operation in arena.operations:
                await arena.delivered(operation, 2)
        await asyncio.gather(*calls)
        await asyncio.gather(*arena.everybody(by=2))
        await arena.clock.jump(BACK_H)
        await asyncio.gather(*arena.everybody(by=3))
    finally:
        arena.clock.set(0)
