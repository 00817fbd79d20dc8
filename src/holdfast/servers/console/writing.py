"""How do values become text on a page? Everything is escaped, unless a template says otherwise; none does."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined

from holdfast.model.quoted import visible

MOST_SHOWN = 20_000
"""Characters of one value on a page; packets are bounded before, results of tools are not."""
_STEPS = ((86_400 * 2, 86_400, "d"), (5_400, 3_600, "h"), (90, 60, "min"), (0, 1, "s"))


def rendered(template: str, context: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("holdfast.servers.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "iso": iso,
        "clock": clock,
        "time_of_day": time_of_day,
        "ago": ago,
        "epoch": epoch,
        "pretty": pretty,
        "visible": shown,
        "duration": duration,
        "money": money,
        "count": count,
    }
    made.globals["asset"] = asset
    return made


@cache
def asset(name: str) -> str:
    """Where an asset is; another one when its content is."""
    content = files("holdfast.servers.console").joinpath("assets", name).read_bytes()
    return f"/assets/{sha256(content).hexdigest()[:12]}/{name}"


def epoch(at: str) -> float:
    """A moment as an observation writes it."""
    return datetime.fromisoformat(at).timestamp()


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def clock(at: float) -> str:
    """For people; always the same place on earth."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def time_of_day(at: float) -> str:
    """Where the order of moments matters, and the day does not."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]


def ago(at: float, now: float) -> str:
    """`3 min ago`, or `in 3 min`."""
    away = abs(now - at)
    if away < 1:
        return "now"
    _, size, word = next(step for step in _STEPS if away >= step[0])
    told = f"{away / size:.0f} {word}"
    return f"in {told}" if at > now else f"{told} ago"


def duration(ms: float | None) -> str:
    """A time as long as a person reads it: `840 µs`, `1.2 ms`, `3.4 s`."""
    if ms is None:
        return "-"
    if ms < 1:
        return f"{ms * 1000:.0f} µs"
    if ms < 1000:
        return f"{ms:.3g} ms"
    return f"{ms / 1000:.3g} s" if ms < 120_000 else f"{ms / 60_000:.3g} min"


def money(millionths: int, currency: str = "USD") -> str:
    amount = millionths / 1_000_000
    digits = 2 if abs(amount) >= 1 or not millionths else 4
    return f"{amount:,.{digits}f} {currency}"


def count(number: float) -> str:
    return f"{number:,.0f}"


def pretty(value: Any) -> str:
    """JSON that people read; what cannot be seen is made visible, what is long is cut."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
    return shown(text)


def shown(text: Any) -> str:
    said = str(text)
    cut = visible(said[:MOST_SHOWN])
    return cut if len(said) <= MOST_SHOWN else f"{cut}… ({len(said) - MOST_SHOWN} more characters)"
