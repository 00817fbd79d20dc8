"""Which field is wrong, what was expected there, and what came instead?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Violation = Literal["STRUCTURAL_VIOLATION", "TYPE_MISMATCH", "OUT_OF_BOUNDS"]


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field. `actual` never shows the value of a field marked `x-sensitivity`."""

    path: str
    """JSON Pointer into the arguments; "" is the whole."""
    expected: str
    actual: str
    message: str


def pointer(steps: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
