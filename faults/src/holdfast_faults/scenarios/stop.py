"""What happens to calls whose process is stopped in the middle, and wakes when others have taken over?"""

import asyncio

from holdfast_faults.arena import Arena


async def stop(arena: Arena) -> None:
    sleeper = arena.processes[0]
    with arena.in_mid_call():
        calls = arena.everybody()
        await arena.all_under_way()
        sleeper.stop()
    try:
        # Retries go to the other process, where there is one. The time is the fault: longer than a lease.
        await asyncio.sleep(arena.stop_s)
    finally:
        sleeper.wake()
    await asyncio.gather(*calls)
