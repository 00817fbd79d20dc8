"""What did an upstream say, where plain JSON data does not say it all?

A function answers with data. A protocol's answer has a form of its own, may say that the tool failed, or that
it needs something from the client before it goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    data: Any
    """What contracts, policies and applications see."""
    native: Mapping[str, Any] | None = None
    """The answer in its protocol's own form, as it came; for clients that speak the same protocol."""
    error: str | None = None
    """The tool says that it failed; VER-1."""
    unfinished: bool = False
    """Nothing was done yet: `native` says what is asked of the client."""
