"""What must be kept of a proposal so that it can be judged or made again? Stored sealed; CON-6."""

import orjson

from holdfast.model.call import Call


def payload(call: Call) -> bytes:
    proposal, principal = call.proposal, call.principal
    return orjson.dumps(
        {
            "arguments": call.arguments,
            "task": proposal.task,
            "step": proposal.step,
            "session": proposal.session,
            "principal": {
                "user": principal.user,
                "agent": principal.agent,
                "roles": sorted(principal.roles),
                "scopes": sorted(principal.scopes),
                "trust": principal.trust,
            },
            "version": call.tool.contract.version,
            "if_match": proposal.if_match,
            "plan_token": proposal.plan_token,
            "environment": proposal.environment,
        }
    )
