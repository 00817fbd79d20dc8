"""Which clients that know no key wait for an answer here, and have they got it?

Such a client cannot name its operation when it comes back, so the ledger keeps for each of its operations who
attends to it: a worker while a client of that worker waits, nobody once that client left without the last
word, and nothing at all once it has it (IDM-1). Which calls a worker attends to is known only there: here.
"""

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.observation import Observation, Status

_LAST_REFUSALS = frozenset({Code.APPROVAL_DENIED, Code.KEY_EXPIRED})
"""What is refused for these is refused for good under its key: the next equal call needs another."""


class Attendance:
    """The calls whose clients wait for this process, each with its answer once there is one."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[Call, Observation | None]] = {}

    def enter(self, call: Call) -> None:
        self._calls[call.nonce] = (call, None)

    def answered(self, call: Call, observation: Observation) -> None:
        """The answer is on its way to the client."""
        if call.nonce in self._calls:
            self._calls[call.nonce] = (call, observation)

    def leave(self, call: Call) -> None:
        self._calls.pop(call.nonce, None)

    def has(self, call: Call) -> bool:
        return call.nonce in self._calls

    def serves(self, tenant: str, call_id: str) -> bool:
        return any(True for _ in self._of(tenant, call_id))

    def find(self, tenant: str, principal: str, call_id: str) -> tuple[Call, Observation] | None:
        """A call that has its answer; one still on its way has none to hand over."""
        for call, observation in self._of(tenant, call_id):
            if observation is not None and call.principal.id == principal:
                return call, observation
        return None

    def _of(self, tenant: str, call_id: str) -> list[tuple[Call, Observation | None]]:
        return [
            (call, observation)
            for call, observation in self._calls.values()
            if call.id == call_id and call.principal.tenant == tenant
        ]


def is_last_word(observation: Observation) -> bool:
    """Whether a client that has this answer has nothing more to learn about its operation."""
    if observation.status in (Status.UNKNOWN, Status.HELD) or observation.pending is not None:
        return False
    if observation.replayed or observation.status is not Status.REFUSED:
        return True
    return observation.code in _LAST_REFUSALS


def has_operation(call: Call, observation: Observation) -> bool:
    """Whether the ledger may hold something of this call: a refusal before the claim leaves nothing."""
    return observation.status is not Status.REFUSED or call.earlier is not None or call.operation is not None
