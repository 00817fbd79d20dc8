"""How is the upstream's name of a session kept from callers, who know it by another one?

Wherever a value is the handle, the id stands instead. Inside longer texts too, where the handle is long
enough to be told from anything else.
"""

from typing import Any

from holdfast.model.redaction import SHORT, spellings


def telling(handle: str) -> bool:
    """Whether it is looked for inside texts: '7' stands in many."""
    return len(handle) >= SHORT


class Exchange:
    def __init__(self, handle: str, id: str) -> None:
        self._handle, self._id = handle, id
        self._inside = tuple(spellings(handle)) if telling(handle) else ()

    def text(self, text: str) -> str:
        if text == self._handle:
            return self._id
        for spelling in self._inside:
            text = text.replace(spelling, self._id)
        return text

    def data(self, data: Any) -> Any:
        match data:
            case str():
                return self.text(data)
            case dict():
                return {self.data(name): self.data(inner) for name, inner in data.items()}
            case list() | tuple():
                return [self.data(inner) for inner in data]
        return data
