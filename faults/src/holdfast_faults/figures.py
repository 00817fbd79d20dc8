"""What came of a scenario? Counted from what clients were told and from what the effect store has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdfast_faults.adapter import Told
from holdfast_faults.operation import Operation


@dataclass(frozen=True, kw_only=True)
class Figures:
    keys: int
    deliveries: int
    """Calls that were sent, retries included."""
    struck: int
    """Keys that were in mid-call when the fault came."""
    effects: int
    duplicated: int
    """Keys whose effect happened more than once."""
    most: int
    """Most effects of one key."""
    lost_acknowledgements: int
    """Keys that were told as done and have no effect."""
    unwanted: int
    """Keys whose effect happened although a person should have said yes first and nobody did."""
    unanswered: int
    """Keys about which nothing was ever told."""
    unknown: int
    """Keys whose client was left with `unknown`: a person has to look."""
    failed: int
    """Keys whose client was left with an error."""
    refused: int
    """Keys that got a clear no; where nothing may happen, any error says so."""
    errors: int
    """Error answers on the way."""
    lost: int
    """Deliveries that nobody answered."""
    seconds: float

    @property
    def wrong(self) -> int:
        """Keys of which something untrue was told, or to which something was done that should not be."""
        return self.duplicated + self.lost_acknowledgements + self.unwanted


@dataclass(frozen=True, kw_only=True)
class Row:
    """One scenario on one gateway."""

    gateway: str
    scenario: str
    figures: Figures | None = None
    why: str = ""
    """Why there are no figures."""
    applies: bool = True
    sample: str = ""
    """The last error anybody was told, to see what it is about."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def count(
    operations: Sequence[Operation], effects: Counter[str], *, struck: int, seconds: float, forbidden: bool
) -> Figures:
    best = [_best(operation) for operation in operations]
    happened = [effects[operation.key] for operation in operations]
    told_done = [Told.DONE in operation.told for operation in operations]
    return Figures(
        keys=len(operations),
        deliveries=sum(operation.deliveries for operation in operations),
        struck=struck,
        effects=sum(happened),
        duplicated=sum(times > 1 for times in happened),
        most=max(happened, default=0),
        lost_acknowledgements=sum(
            done and not times for done, times in zip(told_done, happened, strict=True)
        ),
        unwanted=sum(times > 0 for times in happened) if forbidden else 0,
        unanswered=best.count(None),
        unknown=best.count(Told.UNKNOWN),
        failed=0 if forbidden else best.count(Told.ERROR),
        refused=best.count(Told.REFUSED) + (best.count(Told.ERROR) if forbidden else 0),
        errors=sum(operation.errors for operation in operations),
        lost=sum(operation.lost for operation in operations),
        seconds=round(seconds, 1),
    )


def _best(operation: Operation) -> Told | None:
    """How the operation ended for the client that learned most: several may have carried it out."""
    for told in (Told.DONE, Told.UNKNOWN, Told.REFUSED, Told.ERROR):
        if told in operation.told:
            return told
    return None
