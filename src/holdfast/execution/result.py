"""How did running a tool end?"""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from holdfast.model.errors import Code
from holdfast.model.value import value


class Trace(StrEnum):
    """What a failure proves about the effect."""

    NONE = "none"
    FINAL = "final"
    UNKNOWN = "unknown"


@value(kw_only=True)
class Ran:
    """The upstream answered."""

    value: Any
    cached_at: float | None = None
    native: Mapping[str, Any] | None = None
    error: str | None = None
    """The tool itself says that it failed."""
    unfinished: bool = False
    """It asks something of the client and has done nothing yet."""
    code: Code | None = None
    untouched: bool = False
    """Nothing is left of what it did before it failed."""
    pending: str | None = None
    """Why its outcome will only be known later."""
    goes_on: Mapping[str, Any] | None = None
    steps: Mapping[str, Any] | None = None


@value(kw_only=True)
class Broke:
    """It did not answer as it should have."""

    trace: Trace
    code: Code
    message: str
    retry_after_ms: int | None = None
    native: Mapping[str, Any] | None = None
    late: asyncio.Task[Any] | None = None
    """Still running: its answer settles the operation when it comes."""


Result = Ran | Broke
