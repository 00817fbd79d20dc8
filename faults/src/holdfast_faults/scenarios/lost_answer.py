"""Does a client whose connection broke get the answer of its first call, or a second effect?"""

import asyncio

from holdfast_faults.arena import Arena


async def lost_answer(arena: Arena) -> None:
    async def cut_and_call_again(number: int) -> None:
        operation = arena.operations[number]
        reached = asyncio.create_task(arena.stage.arrived(operation.key))
        cut = await arena.carrier(number).deliver_and_cut(operation, reached)
        arena.struck += cut
        arena.stage.release(operation.key)
        await arena.carry_out(number, by=number + 1)

    with arena.in_mid_call():
        await asyncio.gather(*(cut_and_call_again(number) for number in range(len(arena.operations))))
