"""How are the same few values taken out of whatever somebody answers?

Answers that hold none of them, and that is nearly all, cost one look at their bytes.
"""

import json
from collections.abc import Collection
from typing import Any

import orjson

from holdfast.model.redaction import spellings, withheld


class Purge:
    def __init__(self, values: Collection[str], label: str) -> None:
        self._values = [(value, label) for value in values]
        self._needles = {
            json.dumps(spelling, ensure_ascii=False)[1:-1].encode(errors="replace")
            for value in values
            for spelling in spellings(value)
        }

    def text(self, text: str) -> str:
        return withheld(text, self._values)

    def data(self, data: Any) -> Any:
        """JSON data without the values, wherever they stand in it."""
        return self._without(data) if self._found(data) else data

    def _found(self, data: Any) -> bool:
        try:
            raw = orjson.dumps(data)
        except TypeError:  # a number beyond 64 bits, half a character, or no JSON at all
            return True
        return any(needle in raw for needle in self._needles)

    def _without(self, data: Any) -> Any:
        match data:
            case str():
                return self.text(data)
            case dict():
                return {self._without(name): self._without(inner) for name, inner in data.items()}
            case list() | tuple():
                return [self._without(inner) for inner in data]
        return data
