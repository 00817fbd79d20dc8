"""What must be kept of a proposal so that it can be judged or made again? Stored sealed; CON-6."""

from functools import lru_cache
from math import inf

import orjson

from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Call, Decision, Principal


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
        }
    )


_NOTHING: dict[str, object] = {}


def told(principal: Principal) -> dict[str, object]:
    """Somebody, to be found again."""
    return {
        "user": principal.user,
        "agent": principal.agent,
        "roles": _listed(principal.roles),
        "scopes": _listed(principal.scopes),
        "trust": principal.trust,
        **(_delegated(principal) if principal.rests_on or principal.act else _NOTHING),
    }


def _delegated(principal: Principal) -> dict[str, object]:
    """What narrows the caller beside scopes, and what can be taken back."""
    said: dict[str, object] = {"act": principal.act, "rests_on": principal.rests_on}
    bounds = principal.bounds
    if bounds is not UNBOUND:
        tools = None if bounds.tools is None else _listed(bounds.tools)
        resources = None if bounds.resources is None else _listed(bounds.resources)
        said["bounds"] = (tools, resources, None if bounds.until == inf else bounds.until)
    return said


@lru_cache(maxsize=1024)
def _listed(names: frozenset[str]) -> tuple[str, ...]:
    """In one order; most calls come from few principals."""
    return tuple(sorted(names))
