"""What happens to calls that were under way when the gateway was killed?"""

import asyncio

from holdfast_faults.arena import Arena


async def kill(arena: Arena) -> None:
    victim = arena.processes[0]
    with arena.in_mid_call():
        calls = arena.everybody()
        await arena.all_under_way()
        await victim.kill()
    # What was before its effect happens now, with nobody left who asked for it.
    await victim.start()
    await asyncio.gather(*calls)
