"""What does a modern client carry for us between two requests of one operation?

`requestState`: sealed, bound to the caller, the tool and a time, so that it can be neither read, changed, nor
used for anything else. It names the operation, and holds the upstream's own state of the exchange.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from holdfast.model import defaults
from holdfast.servers.mcp.errors import wrong

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.model.call import Principal

PURPOSE = "mcp-request-state"
LIFE_S = 2 * defaults.ASK_S
"""A person may think as long as a running tool waits, and the client has as long again to come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    what: str
    """What was called: a tool, a prompt or a resource."""
    key: str | None = None
    """The operation, where the protocol named it."""
    upstream: str | None = None
    """The upstream's own `requestState`."""
    parked: str | None = None
    """A running call that waits for this client's answer."""
    approval: str | None = None
    """A question that the client's own dialogue asks."""


def sealed(gateway: "Gateway", principal: "Principal", state: State) -> str:
    said = {name: value for name, value in asdict(state).items() if value is not None}
    return gateway.seal(principal, PURPOSE, said, LIFE_S)


def opened(gateway: "Gateway", principal: "Principal", what: str, given: object) -> State | None:
    """The state a request brings back; None without one, an error for one that is not right."""
    if given is None:
        return None
    said = gateway.unseal(principal, PURPOSE, given) if isinstance(given, str) else None
    if said is None or said.get("what") != what:
        raise wrong(
            "this 'requestState' is not valid here: it is not yours, not for this, or too old; call again"
        )
    return State(**said)
