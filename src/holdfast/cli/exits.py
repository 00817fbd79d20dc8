"""Which number does a command end with? Scripts rely on these (NAM-1)."""

from enum import IntEnum

from holdfast.identity import Unauthenticated
from holdfast.model.errors import ConfigError, Forbidden, NotFound
from holdfast.model.observation import Observation, Status


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    HELD = 4
    UNKNOWN = 5


BY_STATUS: dict[Status, Exit] = {
    Status.DONE: Exit.DONE,
    Status.PREVIEW: Exit.DONE,
    Status.PARTIAL: Exit.FAILED,  # something of it went wrong, so a script must not go on as if it were done
    Status.FAILED: Exit.FAILED,
    Status.REFUSED: Exit.REFUSED,
    Status.HELD: Exit.HELD,
    Status.UNKNOWN: Exit.UNKNOWN,
}


def of(seen: Observation) -> Exit:
    """What goes on is not known yet, and not to be done another way."""
    return Exit.UNKNOWN if seen.pending is not None else BY_STATUS[seen.status]


def of_error(error: BaseException) -> Exit:
    match error:
        case ConfigError():
            return Exit.USAGE
        case Unauthenticated() | Forbidden() | NotFound():
            return Exit.REFUSED
        case _:
            return Exit.FAILED
