"""Who remembers what a call has seen?

Its session and its task, where it names them; else its principal. Whoever names neither has seen all that
this principal has in whatever session: to leave the session out must not be to leave its labels behind.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from holdfast.model.limits import owned, short
from holdfast.model.observation import Observation, Status

if TYPE_CHECKING:
    from holdfast.model.call import Call, Principal, Proposal
    from holdfast.model.tool import Tool

TOLD = frozenset({Status.DONE, Status.PARTIAL, Status.PREVIEW})
"""What brings data to the caller; a refusal or a hold brings none."""
SESSION, TASK, PRINCIPAL = "session", "task", "principal"
KINDS = (SESSION, TASK, PRINCIPAL)


class Holders(NamedTuple):
    tenant: str
    principal: str
    named: tuple[str, ...]
    """Session and task; each is its person's own."""

    @property
    def gaining(self) -> tuple[str, ...]:
        """Who remembers what the call brings."""
        return self.named or (own(self.principal),)

    @property
    def seen(self) -> tuple[str, ...]:
        """Whose labels count for the call; empty: all that its principal brought anywhere."""
        return (*self.named, own(self.principal)) if self.named else ()


def holders(proposal: "Proposal") -> Holders:
    principal = proposal.principal
    named = _named(principal, proposal.session, proposal.task)
    return Holders(principal.tenant, principal.id, named)


def holders_then(facts: Mapping[str, Any]) -> Holders:
    """The same, of a call that is known from what policy was told of it."""
    user = quote(facts["user"], safe="@.-")
    said = ((kind, facts.get(kind)) for kind in (SESSION, TASK))
    named = tuple(f"{kind}:{short(f'{user}/{_quoted(name)}')}" for kind, name in said if name is not None)
    return Holders(facts["tenant"], facts["principal"], named)


def brought(call: "Call", observation: Observation) -> tuple[str, ...]:
    """The labels of what this observation tells; none for most tools."""
    tool: Tool | None = getattr(call, "tool", None)  # a call refused early has none
    if tool is None or not (labels := (*tool.contract.labels, *call.shows)):
        return ()
    told = (observation.status in TOLD and observation.pending is None) or observation.data is not None
    return labels if told or call.misfit else ()  # a fault quotes the answer that has it


def own(principal: str) -> str:
    """The holder for calls that name neither session nor task."""
    return f"{PRINCIPAL}:{short(principal)}"


def _named(principal: "Principal", session: str | None, task: str | None) -> tuple[str, ...]:
    said = ((SESSION, session), (TASK, task))
    return tuple(f"{kind}:{owned(principal, name)}" for kind, name in said if name is not None)


def _quoted(name: str) -> str:
    return quote(name, safe="@.-")
