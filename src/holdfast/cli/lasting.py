"""How long does something last, as people write it: `90s`, `30m`, `1h`, `30d`, or until a time?"""

import re
from datetime import datetime

from holdfast.model.errors import ConfigError

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
LONGEST_S = 36_525 * SECONDS["d"]
"""A hundred years: what is longer is a slip, and no calendar goes on for ever."""
_LIFE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def life(text: str) -> float:
    """In seconds."""
    found = _LIFE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is no length of time; write 90s, 30m, 1h or 30d")
    seconds = float(found[1]) * SECONDS[found[2]]
    if seconds > LONGEST_S:
        raise ConfigError(f"{text!r} is more than a hundred years; write something shorter")
    return seconds


def end(text: str, now: float) -> float:
    """The moment a length of time from now, or the one that is written, with its time zone."""
    if _LIFE.fullmatch(text.strip()):
        return now + life(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is no time; write 30d, or 2027-01-31T12:00:00Z") from None
    if at.tzinfo is None:
        raise ConfigError(f"{text!r} has no time zone; write {text}Z, or the zone that is meant")
    return at.timestamp()
