"""What happens to calls that were under way when the gateway's store went away for a moment?

Where the store is part of the gateway's process, both restart: asked politely first, then by force.
"""

import asyncio

from holdfast_faults.arena import Arena

LEAVING_S = 12.0


async def store_restart(arena: Arena) -> None:
    gateway = arena.processes[0]
    restart = gateway.launch.restart_store
    with arena.in_mid_call():
        calls = arena.everybody()
        await arena.all_under_way()
        if restart is not None:
            await asyncio.to_thread(restart)
        else:
            await _leave(arena)
    if restart is None:
        await gateway.start()
    await asyncio.gather(*calls)


async def _leave(arena: Arena) -> None:
    gateway = arena.processes[0]
    gateway.ask_to_end()
    # Half may still be finished while it leaves; the others are held until it is gone.
    arena.stage.release(*arena.keys[: len(arena.keys) // 2])
    if not await gateway.ended(LEAVING_S):
        await gateway.kill()
