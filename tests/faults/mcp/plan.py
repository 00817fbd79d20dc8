"""In which way does the answer to a thing that was done get lost?

The same for the same name in every run: of four names one after the other, each goes wrong in another way.
"""

import random
from typing import Final, Literal

Way = Literal["drop", "hang", "error", "garbage"]

WAYS: Final[tuple[Way, ...]] = ("drop", "hang", "error", "garbage")
GARBAGE: Final = ("broken", "page", "other id", "other type", "other answer", "list")
SEED: Final = "lost response"

KINDS: Final = ("plain", "probed", "honoured")
"""What the gateway can do about it: nothing, look whether it happened, or ask again under the same key."""
PER_TOOL: Final = 4
"""Calls of one tool that may be lost before its breaker would open; a thousand need as many tools."""


def name(number: int) -> str:
    return f"thing-{number:05}"


def way(name: str) -> Way:
    block, place = divmod(int(name.rpartition("-")[2]), len(WAYS))
    return random.Random(f"{SEED} {block}").sample(WAYS, len(WAYS))[place]


def variant(name: str) -> int:
    """Some ways have several; which one."""
    return random.Random(f"{SEED} {name}").randrange(1 << 16)


def misfits(name: str) -> bool:
    """An answer as it should be, but for what it says."""
    return way(name) == "garbage" and garbage(name) == "other answer"


def garbage(name: str) -> str:
    return GARBAGE[variant(name) % len(GARBAGE)]


def kind_of(number: int) -> str:
    return KINDS[number // len(WAYS) % len(KINDS)]


def tool_of(number: int) -> str:
    """Four names after each other, one of each way, share a tool."""
    return f"{kind_of(number)}-{number // PER_TOOL:04}"


def tools(numbers: int) -> list[str]:
    return sorted({tool_of(number) for number in range(numbers)})
