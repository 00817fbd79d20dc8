"""How often does a process look for garbage?

Whatever is loaded until a server serves stays until it ends, and is most of what there is. Left in sight of
the collector it is looked through again and again: a tenth of a call's CPU, and pauses of tens of
milliseconds.

What a call is made of is gone with it. What a connection or a session is made of refers to itself and is for
the collector; when it ends it has been looked at before and counts as old, and what is old would be looked at
again after millions of new objects. So somebody looks through everything now and then.
"""

import asyncio
import gc
from time import perf_counter

YOUNG = 20_000
"""New objects between two looks: about the calls of a few milliseconds under full load."""
OLDER = 20
"""Looks at one generation before the next."""
EVERY_S = 60.0
"""Between two looks at everything: what ends in a minute leaves a few megabytes behind."""
AS_LONG = 2000
"""Times as long as a look took nothing is looked through again: with very many sessions it takes long."""


def seldom() -> None:
    """As Python would have it a command looks some hundred times while it is loaded, and finds nothing."""
    gc.set_threshold(YOUNG, OLDER, OLDER)


def wait() -> None:
    """Hardly anything of what is loaded now is garbage: looking for it takes a fifth of the start."""
    gc.disable()


def settle() -> None:
    """Everything is loaded: from now on only what calls leave behind is looked through."""
    gc.enable()
    gc.collect()
    keep()
    seldom()


def keep() -> None:
    """What there is now stays, and is not looked through again."""
    gc.freeze()


async def tend(every_s: float = EVERY_S) -> None:
    """Look through everything now and then, as long as the process serves."""
    pause = every_s
    while True:
        await asyncio.sleep(pause)
        began = perf_counter()
        gc.collect()
        pause = max(every_s, AS_LONG * (perf_counter() - began))
