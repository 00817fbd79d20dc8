"""What would a call do, and is that still so when it runs? APR-6.

A preview ends with a plan token: a sealed note of which call was previewed and what it would have touched. A
call that carries one runs only while the same look still gives the same answer.
"""

from typing import Any

from holdfast.model import defaults, token
from holdfast.model.call import Call
from holdfast.model.canonical import NotCanonical, digest

PURPOSE = "plan"


def described(call: Call, impact: Any) -> dict[str, Any]:
    """What a caller is shown of a call that has not run."""
    contract = call.tool.contract
    cost = contract.runtime.cost
    return {
        "effects": [entry.model_dump(mode="json") for entry in contract.transactional.manifest],
        "preconditions": list(contract.affordance.preconditions),
        "impact": impact,
        "arguments": call.tool.input.sensitivity.redact(call.arguments),
        "cost": {"currency": cost.currency, "amount": cost.per_call},
    }


def life_s(approval_s: float) -> float:
    """A plan outlives the approval it may have to wait for."""
    return max(defaults.PLAN_S, approval_s)


def issue(signer: token.Signer, call: Call, impact: Any, now: float, life_s: float) -> str:
    said = {
        "tool": call.tool.contract.tool,
        "version": call.tool.contract.version,
        "contract": call.tool.contract.digest,
        "fingerprint": call.fingerprint,
        "impact": impact_digest(impact),
        "issued_at": round(now),
        "expires_at": round(now + life_s),
    }
    return token.issue(signer, call.principal.tenant, PURPOSE, said)


def wrong(signer: token.Signer, call: Call, presented: str, now: float) -> str | None:
    """Why the plan a call carries is not this call's; None when it is, as far as the token can tell."""
    said = token.read(signer, call.principal.tenant, PURPOSE, presented)
    if said is None:
        return "the plan token was not made here, or was changed"
    if (said["contract"], said["fingerprint"]) != (call.tool.contract.digest, call.fingerprint):
        return "the plan token is for other arguments or another contract"
    if said["expires_at"] <= now:
        return "the plan token has expired"
    return None


def same_impact(signer: token.Signer, call: Call, presented: str, impact: Any) -> bool:
    said = token.read(signer, call.principal.tenant, PURPOSE, presented)
    return said is not None and said["impact"] == impact_digest(impact)


def impact_digest(impact: Any) -> str:
    try:
        return digest(impact)
    except NotCanonical:  # numbers beyond what JSON readers agree on: told apart by their text
        return digest(repr(impact))
