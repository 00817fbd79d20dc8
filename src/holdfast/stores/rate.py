"""Is there room in this bucket? GCRA: one figure per bucket, when the next call would be exactly on time."""

import math

SLACK_S = 1e-6
"""Sums of wall-clock seconds are exact to about a quarter of this; a call is not refused for rounding."""

AHEAD_S = 5.0
"""Calls of several processes are not counted in the order of their times: a bucket may be this far ahead."""


def wait_ms(tat: float | None, now: float, calls: float, per_s: float) -> int | None:
    """Milliseconds until the bucket has room, or None when it has some now."""
    if tat is None:
        return None
    wait = arrival(tat, now, calls, per_s) - now - per_s
    return None if wait <= SLACK_S else math.ceil(wait * 1000)


def arrival(tat: float, now: float, calls: float, per_s: float) -> float:
    """Where the bucket would stand after one more call.

    A full bucket stands at `now + per_s`. It can only be far ahead of that after the clock was set back; it
    then starts anew, for a jump of the clock must not shut a bucket for hours.
    """
    start = tat if now <= tat <= now + per_s + AHEAD_S else now
    return start + per_s / calls
