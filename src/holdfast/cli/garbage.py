"""How often does a process look for garbage?

Whatever is loaded until a server serves stays until it ends, and is most of what there is. Left in sight of
the collector it is looked through again and again: a tenth of a call's CPU, and pauses of tens of
milliseconds.
"""

import gc

YOUNG = 20_000
"""New objects between two looks: about the calls of a few milliseconds under full load."""
OLDER = 20
"""Looks at one generation before the next."""


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
