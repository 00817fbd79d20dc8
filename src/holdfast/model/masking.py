"""How does a value look with some of its parts masked?

Parts are named by JSON Pointers in which `*` stands for any name or index. What is not there needs no mask.
"""

from collections.abc import Iterable
from typing import Any

MASK = "[redacted]"

Steps = tuple[str, ...]


def masked(value: Any, pointers: Iterable[str]) -> Any:
    """A copy of what is changed; the value itself stays as it is."""
    for pointer in pointers:
        value = _masked(value, steps(pointer))
    return value


def steps(pointer: str) -> Steps:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def _masked(value: Any, path: Steps) -> Any:
    if not path:
        return MASK
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {k: _masked(v, rest) if step in ("*", k) else v for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(v, rest) if step in ("*", str(i)) else v for i, v in enumerate(value)]
    return value
