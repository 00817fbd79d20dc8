"""What can be said of a caller and a tool once, for all calls between them?

Which policies apply, which facts they are told and what the rule of POL-3 asks for; and where no policy looks
at the time or the arguments, the judgement itself. It holds under its `Key`, which names everything that any
of it is made from, and under one bundle and one catalog.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.model.call import Call
from holdfast.model.derive import ApprovalRule
from holdfast.model.vocabulary import Environment, Floor, SafetyMode
from holdfast.policy.arguments import RecordOf
from holdfast.policy.bundle import Policy
from holdfast.policy.facts import CHANGING, Facts
from holdfast.policy.obligations import union
from holdfast.policy.shard import Shard


class Judgement(NamedTuple):
    allow: bool
    policies: tuple[Policy, ...]
    """Those that decided: every permit that held, or every forbid."""
    reasons: tuple[str, ...]
    errors: tuple[str, ...] = ()


class Said(NamedTuple):
    """A judgement as a decision tells it."""

    allow: bool
    reasons: tuple[str, ...]
    need: Mapping[str, int]
    policies: tuple[str, ...]
    redact: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    alert: tuple[str, ...] = ()


Key = tuple[str, str, int, frozenset[str], str, Environment, SafetyMode, bool, bool, bool]


def key(call: Call, roles: frozenset[str]) -> Key:
    """Everything a standing is made from; `roles` are all that principal and person hold."""
    proposal = call.proposal
    principal = proposal.principal
    return (
        principal.id,
        principal.tenant,
        principal.trust,
        roles,
        call.tool.contract.digest,
        proposal.environment,
        proposal.safety_mode,
        call.previewing,
        proposal.task is not None,
        proposal.session is not None,
    )


class Standing:
    """Made at the first call under a key; kept by the policy that made it."""

    __slots__ = ("arguments", "known", "labelled", "risk", "rule", "said", "steady")

    def __init__(self, known: Facts, rule: ApprovalRule, arguments: RecordOf, own: Shard, risk: str) -> None:
        self.known: dict[str, Any] = dict(known)
        self.rule = rule
        self.arguments = arguments
        self.risk = risk
        self.steady = not own.names & CHANGING
        """No policy of the tool reads what changes from call to call."""
        self.labelled = "labels" in own.names
        """A policy of the tool reads what the caller has seen."""
        self.said: Said | None = None
        """What was decided, where that is the same every time."""

    def tell(self, judged: Judgement) -> Said:
        asked = () if self.rule.floor is Floor.NONE or not judged.allow else (self.rule.reason,)
        duties = union([policy.duties for policy in judged.policies])
        return Said(
            judged.allow,
            (*judged.reasons, *asked),
            duties.need,
            tuple([policy.id for policy in judged.policies]),
            duties.redact,
            duties.verify,
            duties.alert,
        )
