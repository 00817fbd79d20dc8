"""What proves, outside the gateway, that people said yes to one call? APR-4.

The grant itself is in the store and is used once; this portable token only repeats it. A token that fits is
not enough to run, and one that does not fit is refused.
"""

from holdfast.model import token
from holdfast.model.approval import Approval
from holdfast.model.call import Call

PURPOSE = "approval"


def issue(signer: token.Signer, approval: Approval) -> str:
    ref = approval.ref
    said = {
        "approval_id": approval.id,
        "operation": [ref.tenant, ref.principal, ref.tool, ref.key],
        "contract": approval.contract_digest,
        "fingerprint": approval.fingerprint,
        "approvers": [f"{vote.person} as {vote.held}" for vote in approval.votes if vote.approve],
        "expires_at": round(approval.expires_at),
        "scope": "single_execution",
        "decision": "approved",
    }
    return token.issue(signer, ref.tenant, PURPOSE, said)


def wrong(signer: token.Signer, call: Call, presented: str, now: float) -> str | None:
    """Why a presented token is not this call's, or None."""
    said = token.read(signer, call.principal.tenant, PURPOSE, presented)
    if said is None:
        return "it was not issued here, or was changed"
    if call.ref is None or said["operation"] != list(call.ref):
        return "it was given for another operation"
    if (said["contract"], said["fingerprint"]) != (call.tool.contract.digest, call.fingerprint):
        return "it was given for other arguments or another contract"
    return "it has expired" if said["expires_at"] <= now else None
