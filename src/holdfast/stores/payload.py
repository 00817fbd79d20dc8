"""What must be kept of a proposal so that it can be judged or made again? Stored sealed; CON-6."""

from functools import lru_cache

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
                "roles": _listed(principal.roles),
                "scopes": _listed(principal.scopes),
                "trust": principal.trust,
            },
            "version": call.tool.contract.version,
            "if_match": proposal.if_match,
            "plan_token": proposal.plan_token,
            "environment": proposal.environment,
        }
    )


@lru_cache(maxsize=1024)
def _listed(names: frozenset[str]) -> tuple[str, ...]:
    """In one order; most calls come from few principals."""
    return tuple(sorted(names))
