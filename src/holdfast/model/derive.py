"""What follows from effect, undo and reach, so that nobody declares it twice?

S1's mutation class, S3's approval mode, S4's transaction semantics and the approval rule of POL-3, each a
total function of closed sets (CON-9). Undo `partial` counts as `none`, and what a tool does to the world
outweighs who asks for it.
"""

from dataclasses import dataclass

from holdfast.model import defaults
from holdfast.model.contract import Contract
from holdfast.model.vocabulary import Effect, Environment, Floor, Reach, Undo, Word


class MutationClass(Word):
    READ_ONLY = "read_only"
    WRITE_REVERSIBLE = "write_reversible"
    WRITE_IRREVERSIBLE = "write_irreversible"


class ApprovalMode(Word):
    READ_ONLY = "read_only"
    LOCAL_WRITE = "local_write"
    NETWORK = "network"
    DELEGATED = "delegated"
    DESTRUCTIVE = "destructive"


class Semantics(Word):
    READ_ONLY = "read_only"
    IDEMPOTENT_WRITE = "idempotent_write"
    COMPENSABLE_WRITE = "compensable_write"
    SAGA_STEP = "saga_step"
    IRREVERSIBLE_PIVOT = "irreversible_pivot"
    RETRYABLE_POST_PIVOT = "retryable_post_pivot"


UNDOABLE = frozenset({Undo.EXACT, Undo.SEMANTIC})

_FLOOR_OF_EFFECT = {
    Effect.READ_ONLY: Floor.NONE,
    Effect.EPHEMERAL_WRITE: Floor.NONE,
    Effect.LOW_RISK_INTERNAL: Floor.NONE,
    Effect.MEDIUM_RISK_WRITE: Floor.NONE,
    Effect.HIGH_RISK_EXTERNAL: Floor.USER,
    Effect.CRITICAL_MUTATION: Floor.TWO_PERSON,
}

_MODE_OF_REACH = {
    Reach.NONE: ApprovalMode.LOCAL_WRITE,
    Reach.LOCAL: ApprovalMode.LOCAL_WRITE,
    Reach.NETWORK: ApprovalMode.NETWORK,
    Reach.DELEGATED: ApprovalMode.DELEGATED,
}


def mutation_class(effect: Effect, undo: Undo) -> MutationClass:
    if not effect.writes:
        return MutationClass.READ_ONLY
    return MutationClass.WRITE_REVERSIBLE if undo in UNDOABLE else MutationClass.WRITE_IRREVERSIBLE


def approval_mode(effect: Effect, undo: Undo, reach: Reach) -> ApprovalMode:
    """The gravest that applies: destructive, then delegated, network, local."""
    if not effect.writes:
        return ApprovalMode.READ_ONLY
    if effect is Effect.CRITICAL_MUTATION or undo not in UNDOABLE:
        return ApprovalMode.DESTRUCTIVE
    mode = _MODE_OF_REACH[reach]
    if effect is Effect.HIGH_RISK_EXTERNAL and mode is ApprovalMode.LOCAL_WRITE:
        return ApprovalMode.NETWORK  # somebody outside sees it, however near the tool runs
    return mode


def semantics(contract: Contract) -> Semantics:
    """Which part a tool can play in a saga."""
    promise = contract.transactional
    if not promise.effect.writes:
        return Semantics.READ_ONLY
    if promise.compensation is not None:
        remote = contract.runtime.reach.at_least(Reach.NETWORK)
        return Semantics.SAGA_STEP if remote else Semantics.COMPENSABLE_WRITE
    if promise.undo in UNDOABLE:
        return Semantics.IDEMPOTENT_WRITE if contract.honours_key else Semantics.COMPENSABLE_WRITE
    # No way back: what may be repeated under its key belongs after the pivot, the rest is one.
    return Semantics.RETRYABLE_POST_PIVOT if contract.honours_key else Semantics.IRREVERSIBLE_PIVOT


def join(one: Floor, other: Floor) -> Floor:
    """The stricter of two floors."""
    return one if one.at_least(other) else other


def floor_of(effect: Effect) -> Floor:
    """The least approval S4's class table allows for an effect."""
    return _FLOOR_OF_EFFECT[effect]


def confirmation_required(effect: Effect, undo: Undo, floor: Floor) -> bool:
    """Whether every call of such a tool waits for a person, whoever asks and wherever."""
    always = mutation_class(effect, undo) is MutationClass.WRITE_IRREVERSIBLE
    return always or join(floor, floor_of(effect)) is not Floor.NONE


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """What POL-3 says about one call before policy is heard."""

    floor: Floor
    """The least approval; policy may ask for more, never for less."""
    reason: str
    policy_decides: bool = False
    """The rule is silent: policy alone says whether a person is asked."""


def needs_approval(
    effect: Effect,
    undo: Undo,
    floor: Floor,
    *,
    trust: int,
    environment: Environment,
    critical_scope: bool = False,
    threshold: int = defaults.TRUST_THRESHOLD,
) -> ApprovalRule:
    """POL-3 for a call by somebody of this trust; `critical_scope`: it touches one of those."""
    if not effect.writes:
        reason = "reads need no approval" if floor is Floor.NONE else "the contract asks for it on every call"
        return ApprovalRule(floor, reason)
    least = join(floor, floor_of(effect))
    if critical_scope and environment is Environment.PROD:
        return ApprovalRule(join(least, Floor.OPERATOR), "it touches a critical scope in prod")
    if undo not in UNDOABLE:
        return ApprovalRule(join(least, Floor.USER), f"it cannot be taken back (undo '{undo}')")
    if least is not Floor.NONE:
        return ApprovalRule(least, "its effect or contract asks for it on every call")
    if trust >= threshold and environment is not Environment.PROD:
        return ApprovalRule(Floor.NONE, f"it can be undone, and trust {trust} is at least {threshold}")
    return ApprovalRule(Floor.NONE, "the rule leaves it to policy", policy_decides=True)
