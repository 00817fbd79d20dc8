"""Is this proposal the repair of an earlier one?

A repair is a new proposal under the same key. What was refused is in no ledger, so this is what one process
remembers, up to a bound; a caller that names no operation cannot be recognised.
"""

from collections import OrderedDict
from typing import Literal

from holdfast.model import defaults
from holdfast.model.operation import OperationRef

MAX_OPERATIONS = 10_000
"""Bounds memory; the least recently refused goes first."""

Result = Literal["triggered", "repaired", "exhausted"]


class Repairs:
    def __init__(self) -> None:
        self._tried: OrderedDict[OperationRef, int] = OrderedDict()
        """How often each operation that was refused has been proposed again."""

    def __bool__(self) -> bool:
        """Whether anything that was refused is waited for."""
        return bool(self._tried)

    def see(self, ref: OperationRef | None, refused: bool) -> tuple[Result, ...]:
        """What this proposal means for its operation; `refused`: its arguments could be repaired."""
        if ref is None or not (refused or self._tried):
            return ()
        if ref not in self._tried:
            if refused:
                self._remember(ref)
            return ()
        self._tried[ref] += 1
        found: tuple[Result, ...] = ("triggered",) if self._tried[ref] == 1 else ()
        if not refused:
            del self._tried[ref]
            return (*found, "repaired")
        if self._tried[ref] >= defaults.REPAIR_ATTEMPTS:
            del self._tried[ref]
            return (*found, "exhausted")
        return found

    def _remember(self, ref: OperationRef) -> None:
        self._tried[ref] = 0
        if len(self._tried) > MAX_OPERATIONS:
            self._tried.popitem(last=False)
