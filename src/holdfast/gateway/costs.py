"""What did calls cost: by task, tool, caller, day and part, and together? TEL-5."""

from collections.abc import Sequence
from math import isfinite

from holdfast.gateway.auditing import Auditing
from holdfast.gateway.health import Fresh
from holdfast.gateway.operators import operates
from holdfast.gateway.unwritten import is_whole
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Principal
from holdfast.model.costs import MOST, OF_TASKS
from holdfast.model.errors import Forbidden, HoldfastError
from holdfast.model.limits import micros
from holdfast.model.sums import DAY_S, GROUPS, Group, Sum
from holdfast.ports import Ports, Signs

__all__ = ["GROUPS", "CostDesk", "Group", "Sum"]

LONGEST_TASK = 200
MOST_SUMS = 1000
"""Of one question: an agent names its tasks as it likes."""


class CostDesk:
    """Hung on the gateway as `costs`."""

    def __init__(self, signs: Signs, ports: Ports, auditing: Auditing, fresh: Fresh) -> None:
        self._signs = signs
        self._ports = ports
        self._auditing = auditing
        self._fresh = fresh

    async def sums(
        self,
        by: Principal,
        group: Group,
        since: float,
        until: float | None = None,
        *,
        most: int = MOST_SUMS,
        fresh: bool = True,
    ) -> Sequence[Sum]:
        """The dearest first, days in their order: everybody's for an operator, else one's own.

        Whole days count, as UTC has them. Without `fresh` whoever asks has brought the view up to date.
        """
        everybodys = operates(by, self._ports.people)
        if not everybodys and by.bounds is not UNBOUND:
            raise Forbidden("figures are for people and operators; what was delegated shows single calls")
        if fresh:
            await self._fresh()
        end = self._ports.clock.now() + DAY_S if until is None else until
        whose = None if everybodys else by.user
        found = await self._signs.sums(by.tenant, group, since, end, whose, min(most, MOST_SUMS))
        return sorted(found, key=lambda one: (one.name, one.currency)) if group == "day" else found

    async def report(self, by: Principal, task: str, part: str, amount: float, currency: str = "USD") -> None:
        """A client says what a task cost beside its calls: the model, or retrieval."""
        if part not in OF_TASKS:
            raise HoldfastError(f"a client reports {' or '.join(map(repr, OF_TASKS))}, not {part[:32]!r}")
        if not task or len(task) > LONGEST_TASK or not is_whole(task):
            raise HoldfastError(f"name the task it was for, in at most {LONGEST_TASK} characters")
        if not (isfinite(amount) and 0 <= amount <= MOST):
            raise HoldfastError(f"an amount is between 0 and {MOST:g}; {amount:g} is not")
        if not (len(currency) == 3 and currency.isascii() and currency.isupper()):
            raise HoldfastError(f"a currency has three capital letters, such as 'USD'; not {currency[:16]!r}")
        if (wait_ms := self._ports.ingress.admit(by)) is not None:  # each is a record, as of a call
            raise HoldfastError(f"too many reports at once; wait {wait_ms} ms, then report again")
        cost = {"currency": currency, "parts": {part: micros(amount)}}
        await self._auditing.note(by.tenant, "cost", by.user, task=task, cost=cost)
