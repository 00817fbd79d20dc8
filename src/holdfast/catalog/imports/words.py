"""Which words does a text say, however it is set?"""

import re
from typing import Any

# Only what sets a sentence. Signs that can mean something (/ @ # % & < > = $ ~ _ and the like) are words.
_SETTING = frozenset(".,;:!?'\"()[]*`-\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u2022")
_BLANK = frozenset(" \t\n\r\u00a0")
_NUMBER = re.compile(r"[-+]?\d[\d.,:-]*\d|[-+]?\d")


def words(text: Any) -> list[str]:
    """The words of a text in order, without case, white space and punctuation.

    Whatever is not plain setting stays in a word, so a hidden character or another letter makes another word.
    Signs inside and before a number stay too: `-5` is not `5`, and `3.5` is not `3 5`.
    """
    if not isinstance(text, str):
        return []
    found: list[str] = []
    rest = 0
    for number in _NUMBER.finditer(text):
        found.extend(_split(text[rest : number.start()]))
        found.append(number[0])
        rest = number.end()
    found.extend(_split(text[rest:]))
    return found


def _split(text: str) -> list[str]:
    spaced = "".join(" " if c in _SETTING or c in _BLANK else _lower(c) for c in text)
    return [word for word in spaced.split(" ") if word]


def _lower(character: str) -> str:
    """Lower case of the same alphabet: the Kelvin sign is not a `k`."""
    lower = character.lower()
    return lower if len(lower) == 1 and lower.isascii() == character.isascii() else character
