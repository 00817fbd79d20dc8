"""What is a secret, and how does a configuration point at one without holding it?"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
SHORTEST = 4
"""What is shorter can be guessed, and cannot be taken out of an answer without taking half of it."""

_REFERENCE = re.compile(r"\$(\$?)\{secret:([^{}]*)\}")
_GOOD = re.compile(NAME)


@dataclass(frozen=True, slots=True)
class Secret:
    """Something that opens a door. Printing it shows nothing of it."""

    text: str = field(repr=False)
    expires_at: float | None = None
    """When it ends by the wall clock, where somebody said so."""
    version: str = ""
    """Which of its versions this is, in its provider's words."""

    def ended(self, now: float, early_s: float = 0.0) -> bool:
        return self.expires_at is not None and now >= self.expires_at - early_s


def references(text: str) -> Iterator[str]:
    """The names in `${secret:NAME}`; `$${secret:NAME}` is no reference. Raises ValueError for no name."""
    for escaped, name in _REFERENCE.findall(text):
        if escaped:
            continue
        if not _GOOD.fullmatch(name):
            raise ValueError(f"'${{secret:{name}}}' names no secret; use letters, digits and '.', '_', '-'")
        yield name


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the secrets in their places."""
    return _REFERENCE.sub(lambda found: found[0][1:] if found[1] else values[found[2]], text)
