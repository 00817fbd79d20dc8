"""What does a gateway say, and do, when its upstream acted and did not answer?"""

import asyncio

from holdfast_faults.arena import Arena
from holdfast_faults.stage import ALWAYS_WELL, Ending

WAYS = (Ending.DROP, Ending.ERROR, Ending.HANG)


async def lost_upstream_answer(arena: Arena) -> None:
    ways = {key: WAYS[number % len(WAYS)] for number, key in enumerate(arena.keys)}

    def ending(key: str, visit: int) -> Ending:
        if visit > 1:
            return Ending.ANSWER
        arena.struck += 1
        return ways[key]

    arena.stage.ending = ending
    lanes = len(arena.agents)

    async def one_after_the_other(lane: int) -> None:
        # A server that dies takes every call of its pipe with it: no agent has two under way.
        for number in range(lane, len(arena.operations), lanes):
            await arena.carry_out(number)

    try:
        await asyncio.gather(*(one_after_the_other(lane) for lane in range(lanes)))
    finally:
        arena.stage.ending = ALWAYS_WELL
