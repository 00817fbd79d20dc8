"""Does a call that needs a person end in a clear answer when the client can ask nobody?"""

import asyncio

from holdfast_faults.arena import Arena


async def no_elicitation(arena: Arena) -> None:
    await asyncio.gather(*arena.everybody())
