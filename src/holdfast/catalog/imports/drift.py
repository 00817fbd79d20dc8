"""What changed between the descriptor that was accepted and the one that is offered now?"""

import difflib
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.catalog.imports.characters import visible
from holdfast.catalog.imports.descriptor import digest, material, same
from holdfast.model.fields import pointer

Kind = Literal["same", "cosmetic", "material"]

MAX_LINES = 400
"""Of a diff; whoever has read that many knows enough to say no."""
_MAX_CHANGES = 200
_WIDTH = 100
_GONE = object()


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    before: str | None
    """As JSON; None where there was nothing."""
    after: str | None
    material: bool = True


@dataclass(frozen=True, slots=True)
class Drift:
    kind: Kind
    changes: tuple[Change, ...] = ()
    lines: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The difference for people, with everything hidden made visible."""
        return "\n".join(self.lines)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Drift:
    """How a descriptor differs from the accepted one; material when its digest does."""
    if same(old, new):
        return Drift("same")
    kind: Kind = "cosmetic" if digest(old) == digest(new) else "material"
    changes = []
    for change in _changes(old, new, ()):
        changes.append(change)
        if len(changes) == _MAX_CHANGES:
            break
    return Drift(kind, tuple(changes), tuple(_diff(old, new)))


def _changes(old: Any, new: Any, path: tuple[str | int, ...]) -> Iterator[Change]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _changes(old.get(key, _GONE), new.get(key, _GONE), (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else _GONE
            after = new[index] if index < len(new) else _GONE
            yield from _changes(before, after, (*path, index))
    elif _json(old) != _json(new):
        yield Change(pointer(path), _json(old), _json(new), _matters(old, new, path))


def _matters(old: Any, new: Any, path: tuple[str | int, ...]) -> bool:
    """Whether this one change, alone, would make another promise."""
    return material(_only(old, path)) != material(_only(new, path))


def _only(value: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
    """A descriptor that has nothing but one value at one place."""
    for step in reversed(path):
        value = [value] if isinstance(step, int) else ({} if value is _GONE else {step: value})
    return value if isinstance(value, dict) else {}


def _json(value: Any) -> str | None:
    return None if value is _GONE else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = list(_lines(old, ())), list(_lines(new, ()))
    for count, line in enumerate(
        difflib.unified_diff(before, after, "accepted", "offered now", n=2, lineterm="")
    ):
        if count == MAX_LINES:
            yield f"... cut after {MAX_LINES} lines"
            return
        yield line


def _lines(value: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    """One line per value, and one per line of a long text."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from _lines(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _lines(item, (*path, index))
    elif isinstance(value, str) and ("\n" in value or len(value) > _WIDTH):
        yield f"{_place(path)}:"
        for line in value.split("\n"):
            shown = visible(line)
            yield from (f"    {part}" for part in textwrap.wrap(shown, _WIDTH, drop_whitespace=False) or [""])
    else:
        plain = visible(value) if isinstance(value, str) else value
        yield f"{_place(path)}: {json.dumps(plain, ensure_ascii=False)}"


def _place(path: tuple[str | int, ...]) -> str:
    return visible(".".join(str(step) for step in path)).replace("\n", "<U+000A>")
