"""Is a call that is delivered several times made once?"""

import asyncio

from holdfast_faults.arena import ARRIVING_S, Arena
from holdfast_faults.stage import Point

AT_ONCE = 3
BLOCK = 8
"""Keys under way at once: the question is what is done twice, not how much load a gateway carries."""


async def duplicate(arena: Arena) -> None:
    for start in range(0, len(arena.operations), BLOCK):
        await _together(arena, range(start, min(start + BLOCK, len(arena.operations))))


async def _together(arena: Arena, numbers: range) -> None:
    keys = [arena.keys[number] for number in numbers]
    for key in keys:
        arena.stage.hold(key, Point.BEFORE)
    deliveries = [
        arena.carry_out(number, by=number + agent) for agent in range(AT_ONCE) for number in numbers
    ]
    for number in numbers:
        await arena.delivered(arena.operations[number], AT_ONCE)
    came = await arena.stage.all_arrived(keys, ARRIVING_S)
    arena.struck += came
    arena.stage.release(*keys)
    await asyncio.gather(*deliveries)
    await asyncio.gather(*(arena.carry_out(number) for number in numbers))
