"""How is somebody kept, so that what they wanted can be done in their name later?"""

from functools import lru_cache
from math import inf

from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Principal

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
