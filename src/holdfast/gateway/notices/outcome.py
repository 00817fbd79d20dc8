"""What came of one try at telling somebody?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from holdfast.model.people import Notice


@dataclass(frozen=True, slots=True)
class Sent:
    """It is theirs now."""


@dataclass(frozen=True, slots=True)
class Again:
    """It may go out another time."""

    said: str
    after_s: float | None = None
    """When they want it again, if they said so."""


@dataclass(frozen=True, slots=True)
class Never:
    """Trying again changes nothing."""

    said: str


Outcome: TypeAlias = Sent | Again | Never


class Way(Protocol):
    """How the notices of one channel go out."""

    async def send(
        self, notice: Notice, others: Sequence[Notice] = (), closed_until: float | None = None
    ) -> Outcome:
        """One try, within its time; it raises nothing. `others` are told of in the same message."""
        ...

    def close(self) -> None: ...
