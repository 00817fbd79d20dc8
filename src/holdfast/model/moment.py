"""How is a moment written?

ISO 8601, UTC, to the millisecond. Most moments of one call lie in the same second, so that the part before
the fraction is worked out once.
"""

from datetime import UTC, datetime
from functools import lru_cache

_FRACTIONS = tuple(f".{millisecond:03d}+00:00" for millisecond in range(1000))


def iso(at: float) -> str:
    """To the millisecond that is over, as `datetime.isoformat` has it: microseconds are rounded before."""
    second = int(at // 1)
    microsecond = round((at - second) * 1_000_000)
    if microsecond == 1_000_000:
        second, microsecond = second + 1, 0
    return to_the_second(second) + _FRACTIONS[microsecond // 1000]


def iso_cut(at: float) -> str:
    """To the millisecond that is over, nothing rounded: what the audit's records say."""
    second = int(at // 1)
    return to_the_second(second) + _FRACTIONS[int((at - second) * 1000)]


@lru_cache(maxsize=64)
def to_the_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
