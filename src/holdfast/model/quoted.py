"""How is text that an agent wrote shown to the person who decides about it? APR-1.

It is bounded, what cannot be seen is made visible, and every piece of it is named, so that no part of a
packet can pass for the gateway's own words.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.fields import pointer

LONGEST = 2000
"""Characters shown of one text; the count of the others is told."""
MOST = 200
"""Members shown of one object or list."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""
_PLAIN = frozenset("\n\t")


@dataclass(slots=True)
class Marks:
    """Where in a packet the agent's own words are, as JSON Pointers."""

    written: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)


def quoted(value: Any, marks: Marks, path: tuple[str | int, ...] = ()) -> Any:
    """The value as it may be shown; what was found in it is noted in `marks`."""
    match value:
        case str():
            marks.written.append(pointer(path))
            return _text(value, marks, path)
        case Mapping():
            shown = list(value.items())[:MOST]
            if len(value) > MOST:
                marks.shortened.append(pointer(path))
            return {_text(str(k), marks, path): quoted(v, marks, (*path, str(k))) for k, v in shown}
        case list() | tuple():
            if len(value) > MOST:
                marks.shortened.append(pointer(path))
            return [quoted(item, marks, (*path, i)) for i, item in enumerate(value[:MOST])]
        case _:
            return value


def visible(text: str) -> str:
    return "".join(_shown(character) for character in text)


def _text(text: str, marks: Marks, path: tuple[str | int, ...]) -> str:
    cut = text[:LONGEST]
    shown = visible(cut)
    if shown != cut:
        marks.hidden.append(pointer(path))
    if len(text) > LONGEST:
        marks.shortened.append(pointer(path))
        return f"{shown}… ({len(text) - LONGEST} more characters)"
    return shown


def _shown(character: str) -> str:
    if character in _PLAIN or not _is_unseen(character):
        return character
    return f"⟦U+{ord(character):04X}⟧"


def _is_unseen(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return selector or character in _BLANKS or unicodedata.category(character) in _UNSEEN
