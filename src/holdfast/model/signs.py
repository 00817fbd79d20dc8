"""What is counted in the view of the calls to find out whether something is wrong?"""

from typing import NamedTuple


class Latency(NamedTuple):
    """Calls of one tool that went well after about the same time."""

    tool: str
    bucket: int
    calls: int


class Repeat(NamedTuple):
    """Calls of one caller at one tool, within a minute, that ended alike."""

    caller: str
    task: str
    """Of calls that were done; '' of others, whatever they were for."""
    tool: str
    status: str
    code: str
    calls: int
    together: int
    """Calls of the same caller, task and tool, however they ended."""


class Costed(NamedTuple):
    """What a tool cost on one day, or a task until its last one."""

    tool: str
    """Empty of a task."""
    task: str
    """Empty of a tool."""
    currency: str
    day: int
    cost: int
    """In millionths."""


class Exhausted(NamedTuple):
    """Calls that failed after so many attempts."""

    tool: str
    version: str
    attempts: int
    calls: int
