"""What did an upstream say, where plain JSON data does not say it all?

A function answers with data. A protocol's answer has a form of its own, may say that the tool failed, or that
it needs something from the client before it goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model.errors import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    data: Any
    """What contracts, policies and applications see."""
    native: Mapping[str, Any] | None = None
    """The answer in its protocol's own form, as it came; for clients that speak the same protocol."""
    error: str | None = None
    """The tool says that it failed; VER-1."""
    cost: object = None
    """What the tool says this call cost; believed as far as `costs.reported` does."""
    unfinished: bool = False
    """Nothing was done yet: `native` says what is asked of the client."""
    code: Code | None = None
    """What kind of failure `error` is; INTERNAL where it does not say."""
    untouched: bool = False
    """Nothing of what it did before `error` is left."""
    pending: str | None = None
    """It goes on by itself, or waits for somebody: its probe will tell what came of it. Why, in words."""
    goes_on: Mapping[str, Any] | None = None
    """What that is, for programs; None where it is stopped."""
    steps: Mapping[str, Any] | None = None
    """What it is made of, and how far that came; NAM-4."""
