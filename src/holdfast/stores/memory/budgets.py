"""Budgets in memory: the same rules as on disk. Nothing awaits in here, so every step is a transaction."""

from dataclasses import dataclass, field, replace

from holdfast.model.limits import NOTHING, Account, Amount, Bucket
from holdfast.model.stage import ReserveBudget
from holdfast.ports import Denied
from holdfast.stores.denial import budget_denied
from holdfast.stores.spending import Outcome, parts

Name = tuple[str, str]
"""Tenant and bucket, or tenant and call."""


@dataclass(slots=True)
class Reservation:
    bucket: Bucket
    amount: Amount
    open: bool
    at: float
    owner: str = ""
    boot_id: str = ""
    lease_boot: float = 0.0


@dataclass(slots=True)
class Budgets:
    accounts: dict[Name, Account] = field(default_factory=dict)
    reservations: dict[Name, list[Reservation]] = field(default_factory=dict)

    def taken(self, tenant: str, bucket: str, but: str | None = None) -> Amount:
        """What is used or reserved, but for what call `but` holds itself."""
        found = self.accounts.get((tenant, bucket))
        taken = NOTHING if found is None else found.taken
        for held in self.reservations.get((tenant, but), ()) if but else ():
            if held.open and held.bucket.name == bucket:
                taken = taken.minus(held.amount)
        return taken

    def refusal(self, gate: str, stage: ReserveBudget, tenant: str, again: str | None) -> Denied | None:
        """`again`: the call whose own reservation goes back before this one is made."""
        taken = self.taken(tenant, stage.bucket.name, again)
        return None if stage.limit.holds(taken.plus(stage.ask)) else budget_denied(gate, stage, taken)

    def reserve(self, stage: ReserveBudget, tenant: str, call_id: str, held: Reservation) -> None:
        name = (tenant, stage.bucket.name)
        account = self.accounts.get(name, Account(bucket=stage.bucket))
        self.accounts[name] = replace(account, reserved=account.reserved.plus(stage.ask))
        self.reservations.setdefault((tenant, call_id), []).append(held)

    def start_over(self, tenant: str, call_id: str) -> None:
        for held in self.reservations.pop((tenant, call_id), []):
            if held.open:
                self._move(tenant, held, NOTHING)

    def settle(self, tenant: str, call_id: str, outcome: Outcome, at: float) -> None:
        kept: list[Reservation] = []
        for held in self.reservations.pop((tenant, call_id), []):
            used, back = parts(held.amount, outcome)
            if held.open or outcome.happened:
                self._move(tenant, held, used)
            if not outcome.happened:
                amount = Amount(back.calls, back.cost) if held.open else held.amount
                kept.append(Reservation(held.bucket, amount, False, at if held.open else held.at))
        if kept:
            self.reservations[tenant, call_id] = kept

    def drop(self, tenant: str, call_id: str, outcome: Outcome, at: float) -> None:
        self.settle(tenant, call_id, outcome, at)
        self.reservations.pop((tenant, call_id), None)

    def forget(self, now: float) -> None:
        for key, account in list(self.accounts.items()):
            window, start = account.bucket.window_s, account.bucket.starts_at
            if window is not None and start + 2 * window <= now and account.reserved == NOTHING:
                del self.accounts[key]

    def _move(self, tenant: str, held: Reservation, used: Amount) -> None:
        name = (tenant, held.bucket.name)
        account = self.accounts.get(name, Account(bucket=held.bucket))
        released = held.amount if held.open else NOTHING
        self.accounts[name] = replace(
            account, used=account.used.plus(used), reserved=account.reserved.minus(released)
        )
