"""Where does a version stand in its life today?

Notice on its `deprecated_on`, an end on its `sunset_on`: but nothing is taken away from somebody who used it
in the last day (REG-6).
"""

from datetime import UTC, date, datetime

from holdfast.model.contract import Contract
from holdfast.model.vocabulary import ToolStatus

_LIVING = frozenset({ToolStatus.ACTIVE, ToolStatus.PROVISIONAL, ToolStatus.DEPRECATED})


def due(contract: Contract, status: ToolStatus, now: float) -> ToolStatus | None:
    """The status this version should have had by now; None when the one it has is right."""
    if status not in _LIVING:
        return None
    today = datetime.fromtimestamp(now, UTC).date()
    identity = contract.identity
    if _reached(identity.sunset_on, today):
        return ToolStatus.SUNSET
    if status is not ToolStatus.DEPRECATED and _reached(identity.deprecated_on, today):
        return ToolStatus.DEPRECATED
    return None


def has_dates(contract: Contract) -> bool:
    """Whether time alone changes its status."""
    return contract.identity.sunset_on is not None or contract.identity.deprecated_on is not None


def _reached(day: str | None, today: date) -> bool:
    return day is not None and date.fromisoformat(day) <= today
