"""What holds where nobody has written a policy? Nothing is allowed, and every refusal says why."""

from holdfast.model.call import Call, Decision
from holdfast.ports import Ids

WHY = (
    "no policy is loaded, so nothing is permitted; write some and name their folder under 'policies' "
    "(only 'dev' with 'local' has a starter)"
)


class DenyAll:
    version = "none"

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def decide(self, call: Call) -> Decision:
        return Decision(id=f"pd_{self._ids.nonce()}", allow=False, reasons=(WHY,), version=self.version)
