"""Where in the configuration is something, and what is wrong there?"""

from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, ...]


class Fault(NamedTuple):
    place: Place
    text: str

    def __str__(self) -> str:
        return f"{'.'.join(self.place) or 'config'}: {self.text}"


def like(place: Place, pattern: str) -> bool:
    """Whether a place is the one a dotted path names; `*` is any name."""
    parts = pattern.split(".") if pattern else []
    return len(parts) == len(place) and all(p in ("*", step) for p, step in zip(parts, place, strict=True))
