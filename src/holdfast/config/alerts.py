"""When are people told that something is wrong? TEL-3.

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

from pydantic import Field

from holdfast.config.section import Section
from holdfast.model import defaults


class Alerts(Section):
    enabled: bool = True
    """Look for what is wrong, and tell."""
    every_s: float = Field(default=defaults.ALERT_EVERY_S, gt=0)
    """Seconds between two looks."""
    errors: float = Field(default=defaults.ERROR_ALERT, ge=0, le=1)
    """Share of a tool's calls that fail by its own fault, beyond which it is degraded."""
    latency: float = Field(default=defaults.LATENCY_ALERT, gt=1)
    """How many times its baseline a tool's p99 latency may be."""
    timeouts: float = Field(default=defaults.TIMEOUT_ALERT, ge=0, le=1)
    """Share of a tool's calls that may overrun their time."""
    least_calls: int = Field(default=defaults.LEAST_CALLS, ge=1)
    """A share is judged only from so many calls in the window on."""
    least_latencies: int = Field(default=defaults.LEAST_LATENCIES, ge=1)
    """And a p99 latency from so many on."""
    backlog: int = Field(default=defaults.BACKLOG_ALERT, ge=1)
    """So many questions that wait for one role"""
    backlog_s: float = Field(default=defaults.BACKLOG_ALERT_S, ge=0)
    """for so many seconds are a backlog."""
    exhausted: int = Field(default=defaults.EXHAUSTED_ALERT, ge=1)
    """So many calls of a tool that failed after every retry."""
    loop_failures: int = Field(default=defaults.LOOP_FAILURES, ge=2)
    """So many calls a minute of one caller and task at one tool that are refused or fail alike are a loop."""
    loop_calls: int = Field(default=defaults.LOOP_CALLS, ge=2)
    """So many calls a minute of one task at one tool that end alike are a loop even when they are done."""
    cost: float = Field(default=defaults.COST_ALERT, gt=1)
    """How many times its median a tool's cost of a day, or a task's cost, may be."""
