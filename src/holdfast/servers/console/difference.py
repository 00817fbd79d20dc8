"""What is different between two readings? Field by field, bounded, with everything in them made visible.

What a tool read may be of any size and shape. Only leaves are compared; lists of plain values are compared as
sets. Where the readings come from two tools, a field that only one of them tells is not a change.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from holdfast.model.quoted import visible

MOST_FIELDS = 200
DEEPEST = 6
LONGEST = 400
"""Characters shown of one value."""
CONTEXT = 40
"""Characters before the place where two long texts begin to differ."""
MOST_LINES = 80
MOST_COMPARED = 20_000
"""Characters of one text that are compared line by line."""
_BEFORE = re.compile(r"(^|_)(before|old|from)(_|$)")
_AFTER = {"before": "after", "old": "new", "from": "to"}
_PLAIN = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a long text, `mark` being `+`, `-` or a blank."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """One field in both readings; what is not there is None."""

    name: str
    before: str | None
    after: str | None
    lines: tuple[Line, ...] = ()
    """How a text of several lines changed."""


@dataclass(frozen=True, slots=True)
class Difference:
    changed: tuple[Field, ...]
    same: tuple[Field, ...]
    left_out: int
    """Fields that are not shown: there are too many."""


def difference(before: Any, after: Any, *, same_source: bool) -> Difference:
    """Everything is compared before anything is cut: what changed comes first."""
    old, new = _named(before), _named(after)
    pairs = {} if same_source else _pairs(new)
    found = list(pairs.values())
    paired = {name for key in pairs for name in (key, _partner(key))}
    for name in [*new, *(name for name in old if name not in new)]:
        if name in paired or (not same_source and not (name in old and name in new)):
            continue
        found.append((name, old.get(name, _MISSING), new.get(name, _MISSING)))
    changed = [one for one in found if _differ(one[1], one[2])]
    same = [one for one in found if not _differ(one[1], one[2])]
    shown = [*changed, *same][:MOST_FIELDS]
    return Difference(
        tuple(_field(*one) for one in shown[: len(changed)]),
        tuple(Field(name, _text(was), _text(is_now)) for name, was, is_now in shown[len(changed) :]),
        len(found) - len(shown),
    )


def fields(value: Any, longest: int = LONGEST) -> tuple[tuple[tuple[str, str], ...], int]:
    """One reading as names and texts, and how many are not shown."""
    leaves = _named(value)
    shown = tuple((name, _text(leaf, longest) or "") for name, leaf in list(leaves.items())[:MOST_FIELDS])
    return shown, len(leaves) - len(shown)


class _Missing:
    pass


_MISSING = _Missing()


def _differ(old: Any, new: Any) -> bool:
    """By the values themselves; `true` is not 1, although it is equal to it."""
    return bool(old != new) or isinstance(old, bool) is not isinstance(new, bool)


def _field(name: str, old: Any, new: Any) -> Field:
    """Of one that changed."""
    before, after = _text(old), _text(new)
    lines: tuple[Line, ...] = ()
    if isinstance(old, str) and isinstance(new, str):
        if "\n" in old or "\n" in new:
            lines = tuple(_lines(old, new))
        if before == after or not _tells(lines):
            before, after = _where(old, new)
    elif before == after:
        before, after = f"{before} ({_kind(old)})", f"{after} ({_kind(new)}, and not the same)"
    return Field(name, before, after, lines)


def _tells(lines: Sequence[Line]) -> bool:
    """Whether a change is among the lines that are shown; without lines, the texts are."""
    return not lines or any(line.mark != " " for line in lines)


def _where(old: str, new: str) -> tuple[str, str]:
    """Two texts from shortly before the place on where they differ."""
    pairs = enumerate(zip(old, new, strict=False))
    place = next((at for at, (was, is_now) in pairs if was != is_now), min(len(old), len(new)))
    start = max(place - CONTEXT, 0)
    told = [f"… from character {start + 1} on: {_text(text[start:])}" for text in (old, new)]
    return told[0], told[1]


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    return "values" if isinstance(value, Mapping | list | tuple) else "no text"


def _lines(old: str, new: str) -> Iterator[Line]:
    """The lines that changed, and one on either side of them."""
    was, is_now = (text.splitlines() for text in (old[:MOST_COMPARED], new[:MOST_COMPARED]))
    whole = max(len(was), len(is_now)) <= 4 * MOST_LINES and max(len(old), len(new)) <= MOST_COMPARED
    was, is_now = was[: 4 * MOST_LINES], is_now[: 4 * MOST_LINES]
    shown = 0
    for told in islice(difflib.unified_diff(was, is_now, lineterm="", n=1), 2, None):  # two name the files
        if told.startswith("@@"):
            continue
        if shown == MOST_LINES:
            yield Line(" ", "… more lines differ")
            return
        shown += 1
        yield Line(told[0], _text(told[1:]) or "")
    if shown and not whole:
        yield Line(" ", "… the rest is not compared here: it is too long")


def _pairs(new: Mapping[str, Any]) -> dict[str, tuple[str, Any, Any]]:
    """Fields of a prediction that say both: `left_before` and `left_after`."""
    found = {}
    for name, value in new.items():
        partner = _partner(name)
        if partner is not None and partner in new:
            plain = re.sub(r"__+", "_", _BEFORE.sub(r"\1\3", name)).strip("_") or name
            found[name] = (plain, value, new[partner])
    return found


def _partner(name: str) -> str | None:
    place = _BEFORE.search(name)
    if place is None:
        return None
    return name[: place.start(2)] + _AFTER[place[2]] + name[place.end(2) :]


def _leaves(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value and depth < DEEPEST:
        for key, inner in value.items():
            shown = visible(str(key)[:80])
            yield from _leaves(inner, f"{name}.{shown}" if name else shown, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value and depth < DEEPEST:
        if all(isinstance(item, _PLAIN) for item in value):
            yield from ((f"{name}: {_text(item)}", item) for item in value)
        else:
            for place, inner in enumerate(value):
                yield from _leaves(inner, f"{name}[{place}]", depth + 1)
    elif name or not isinstance(value, Mapping):
        yield name or "value", value


def _named(value: Any) -> dict[str, Any]:
    """Every leaf has a name of its own: none stands before another that is written alike."""
    found: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for name, leaf in _leaves(value):
        own = name
        while own in found:
            times[name] += 1
            own = f"{name} ({times[name] + 1})"
        found[own] = leaf
    return found


def _text(value: Any, longest: int = LONGEST) -> str | None:
    if isinstance(value, _Missing):
        return None
    if isinstance(value, str):
        said = value
    elif isinstance(value, Mapping | list | tuple):
        said = _structure(value)
    else:
        said = orjson.dumps(value, default=str).decode() if not isinstance(value, int) else str(value).lower()
    cut = visible(said[:longest])
    return cut if len(said) <= longest else f"{cut}… ({len(said) - longest} more characters)"


def _structure(value: Any) -> str:
    """What is nested too deeply to be taken apart; empty ones as they are."""
    if not value:
        return "{}" if isinstance(value, Mapping) else "[]"
    return f"({len(value)} nested values, too deep to show)"
