"""What holds before anybody has written a policy?

Nothing is allowed (`DenyAll`), except on a developer's own machine (`environment: dev`
with `auth.mode: local`), where `Starter` is in force and says so:

- reads are allowed;
- writes are allowed, with the approval that their effect, their undo and the caller's
  trust ask for (the rule is `holdfast.model.derive.needs_approval`);
- what the rule leaves to policy, an undoable write by a caller of little trust, needs
  that caller's own consent.
"""

from collections.abc import Sequence

from holdfast.model import defaults
from holdfast.model.call import Call, Decision
from holdfast.model.derive import needs_approval
from holdfast.model.scopes import covers
from holdfast.model.vocabulary import Floor
from holdfast.ports import Ids


class DenyAll:
    version = "none"

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def decide(self, call: Call) -> Decision:
        return Decision(
            id=f"pd_{self._ids.nonce()}",
            allow=False,
            reasons=("no policy is loaded, so nothing is permitted (only 'dev' with 'local' has a starter)",),
            version=self.version,
        )


class Starter:
    version = "starter/1"

    def __init__(
        self, ids: Ids, *, threshold: int = defaults.TRUST_THRESHOLD, critical_scopes: Sequence[str] = ()
    ) -> None:
        self._ids = ids
        self._threshold = threshold
        self._critical = tuple(critical_scopes)

    def decide(self, call: Call) -> Decision:
        contract = call.tool.contract
        rule = needs_approval(
            contract.effect,
            contract.transactional.undo,
            contract.security.approval_floor,
            trust=call.principal.trust,
            environment=call.proposal.environment,
            critical_scope=any(covers(self._critical, scope) for scope in contract.security.required_scopes),
            threshold=self._threshold,
        )
        return Decision(
            id=f"pd_{self._ids.nonce()}",
            allow=True,
            reasons=(rule.reason,),
            floor=Floor.USER if rule.policy_decides else rule.floor,
            risk=contract.effect.value,
            version=self.version,
        )
