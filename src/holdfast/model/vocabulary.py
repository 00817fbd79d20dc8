"""Which words does a contract choose from?

Every closed set of SPEC section 0, ordered where the order means something.
"""

from enum import StrEnum
from operator import attrgetter
from typing import Any, Self

_VALUE = property(attrgetter("_value_"))


class Word(StrEnum):
    """A closed set of words.

    Members and `value` are plain attributes, as Python 3.12 has them: before it every mention of one goes
    through a property written in Python, which a call would pay for a hundred times.
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        type.__setattr__(cls, "value", _VALUE)
        for name, member in cls.__members__.items():
            type.__setattr__(cls, name, member)


class Ordered(Word):
    """A closed set whose members are listed from least to most.

    Compare with `rank` or `at_least`: `<` compares the words.
    """

    rank: int

    def __new__(cls, value: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.rank = len(cls.__members__)
        return member

    def at_least(self, other: Self) -> bool:
        return self.rank >= other.rank


class Effect(Ordered):
    """What a call may do to the world, as declared; S4's six classes."""

    READ_ONLY = "READ_ONLY"
    EPHEMERAL_WRITE = "EPHEMERAL_WRITE"
    LOW_RISK_INTERNAL = "LOW_RISK_INTERNAL"
    MEDIUM_RISK_WRITE = "MEDIUM_RISK_WRITE"
    HIGH_RISK_EXTERNAL = "HIGH_RISK_EXTERNAL"
    CRITICAL_MUTATION = "CRITICAL_MUTATION"

    @property
    def writes(self) -> bool:
        return self is not Effect.READ_ONLY

    @property
    def needs_key(self) -> bool:
        return self.at_least(Effect.LOW_RISK_INTERNAL)


class Undo(Word):
    """How completely an effect can be taken back."""

    EXACT = "exact"
    SEMANTIC = "semantic"
    PARTIAL = "partial"
    NONE = "none"


class Floor(Ordered):
    """The least approval a call needs whatever policy says."""

    NONE = "none"
    USER = "user"
    OPERATOR = "operator"
    TWO_PERSON = "two_person"
    COMPLIANCE = "compliance"


class Reach(Ordered):
    """How far from this process an effect can land."""

    NONE = "none"
    LOCAL = "local"
    NETWORK = "network"
    DELEGATED = "delegated"


class TimeoutClass(Word):
    """How long a caller is prepared to wait; the figures are in `defaults`."""

    INTERACTIVE = "interactive"
    STANDARD = "standard"
    LONG_RUNNING = "long_running"
    ASYNC = "async"


class Operation(Word):
    """What happens to a resource in an effect manifest."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class ToolStatus(Word):
    """Where a tool version stands in its life; REG-1+."""

    ACTIVE = "active"
    DEPRECATED = "deprecated"
    SUNSET = "sunset"
    UNAVAILABLE = "unavailable"
    QUARANTINED = "quarantined"
    REVOKED = "revoked"
    PROVISIONAL = "provisional"


class DataClass(Ordered):
    """How far the data a tool touches may travel."""

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    REGULATED = "regulated"
    SECRET = "secret"


class Egress(Word):
    """Which network addresses a tool may reach."""

    NONE = "none"
    ALLOWLISTED = "allowlisted_domains"
    PRIVATE = "private_network_only"
    WITH_APPROVAL = "unrestricted_with_approval"


class Severity(Ordered):
    """How bad a failed sanity predicate is: only critical ones fail a call."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Environment(Word):
    DEV = "dev"
    STAGING = "staging"
    PROD = "prod"


class SafetyMode(Word):
    """The brake a call is made under; LIF-4+."""

    NORMAL = "normal"
    READ_ONLY = "read_only"
    DRY_RUN = "dry_run"
    HALTED = "halted"


class State(Word):
    """Where one operation stands in the effect ledger; IDM-5."""

    HELD = "held"
    CLAIMED = "claimed"
    DISPATCHED = "dispatched"
    COMMITTED = "committed"
    NO_EFFECT = "no_effect"
    UNKNOWN = "unknown"
    FAILED_FINAL = "failed_final"
    COMPENSATED = "compensated"

    @property
    def running(self) -> bool:
        return self in (State.CLAIMED, State.DISPATCHED)

    @property
    def settled(self) -> bool:
        return self in (State.COMMITTED, State.FAILED_FINAL, State.COMPENSATED)


class Rung(Word):
    """How much is known about an effect; VER-6."""

    DISPATCHED = "dispatched"
    ACCEPTED = "accepted"
    OBSERVED = "observed"
    VERIFIED = "verified"


class Strength(Word):
    """How firmly one key is bound to one effect at the upstream; IDM-7."""

    EXACTLY_ONCE = "exactly_once"
    AT_MOST_ONCE = "at_most_once"
    PROBED = "probed"
    NONE = "none"


class KeySource(Word):
    """Who named the operation; IDM-1."""

    CALLER = "caller"
    DERIVED = "derived"
    REQUEST = "request"
    ADOPTED = "adopted"
