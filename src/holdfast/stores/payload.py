"""What must be kept of a proposal so that it can be judged or made again? Stored sealed; CON-6."""

import orjson

from holdfast.model.call import Call, Decision
from holdfast.model.whose import told

__all__ = ["payload", "told"]


def payload(call: Call) -> bytes:
    proposal, principal = call.proposal, call.principal
    decision: Decision | None = getattr(call, "decision", None)
    redact = () if decision is None else decision.redact
    return orjson.dumps(
        {
            "arguments": call.arguments,
            "task": proposal.task,
            "step": proposal.step,
            "session": proposal.session,
            "principal": told(principal),
            "version": call.tool.contract.version,
            "if_match": proposal.if_match,
            "plan_token": proposal.plan_token,
            "environment": proposal.environment,
            **({"redact": redact} if redact else _NOTHING),
            **(_NOTHING if proposal.fallback is None else {"fallback": proposal.fallback.kept()}),
        }
    )


_NOTHING: dict[str, object] = {}
