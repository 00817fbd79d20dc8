"""What holds where nobody has written a policy? Nothing is allowed, and every refusal says why."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.model.call import Call, Decision
from holdfast.ports import Ids

WHY = (
    "no policy is loaded, so nothing is permitted; write some and name their folder under 'policies' "
    "(only 'dev' with 'local' has a starter)"
)


class DenyAll:
    version = "none"

    def __init__(self, ids: Ids, asked: Callable[[Call], Mapping[str, Any]] | None = None) -> None:
        """`asked` tells what policies would be told of a call, so that some can be tried on it later."""
        self._ids = ids
        self._asked = asked

    def decide(self, call: Call) -> Decision:
        facts = None if self._asked is None else self._asked(call)
        return Decision(
            id=f"pd_{self._ids.nonce()}", allow=False, reasons=(WHY,), version=self.version, facts=facts
        )
