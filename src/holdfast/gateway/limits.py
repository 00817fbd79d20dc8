"""Which limits does a configuration set, and how much of them is left?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.config import Config
from holdfast.model.call import Principal
from holdfast.model.limits import (
    Account,
    Amount,
    Budget,
    Kind,
    Limit,
    Per,
    Rate,
    bucket_of,
    micros,
    owned,
    short,
)
from holdfast.model.secret import references

MILLIONTHS = 1_000_000


def budgets(config: Config) -> tuple[Budget, ...]:
    return tuple(
        Budget(
            per=Per(said.per),
            kind=Kind(said.kind),
            limit=Limit(
                said.calls,
                None if said.cost is None else micros(said.cost),
                None if said.wall_s is None else round(said.wall_s * 1000),
                said.retries,
            ),
            window_s=said.window_s,
            currency=said.currency,
        )
        for said in config.limits.budgets
    )


def rates(config: Config) -> tuple[Rate, ...]:
    return tuple(
        Rate(
            per=Per(said.per),
            match=said.match,
            calls=said.calls,
            per_s=said.per_s,
            held=_held(config) if said.per == "credential" else {},
            owners={name: one.tenant for name, one in config.secrets.items() if one.tenant is not None},
        )
        for said in config.limits.rates
    )


def _held(config: Config) -> dict[str, tuple[str, ...]]:
    """The secrets in the headers and variables of each upstream."""
    servers = {name: upstream.mcp for name, upstream in config.upstreams.items() if upstream.mcp is not None}
    return {
        name: tuple(
            secret for text in (*server.headers.values(), *server.env.values()) for secret in references(text)
        )
        for name, server in servers.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One budget and what has become of it."""

    budget: Budget
    account: Account

    def shown(self) -> dict[str, Any]:
        bucket, account = self.account.bucket, self.account
        left = {
            name: None if limit is None else limit - taken
            for name, limit, taken in zip(Limit._fields, self.budget.limit, account.taken, strict=True)
        }
        return {
            "per": bucket.per.value,
            "kind": bucket.kind.value,
            "subject": bucket.subject,
            "window_s": bucket.window_s,
            "ends_at": bucket.ends_at,
            "limit": _plain(self.budget.limit),
            "used": _plain(account.used),
            "reserved": _plain(account.reserved),
            "left": _plain(Limit(**left)),
        }


def standings(
    budgets: Iterable[Budget], accounts: Iterable[Account], by: Principal, everybody: bool, now: float
) -> list[Standing]:
    """Every budget with everybody who has drawn on it in the window that is now."""
    found = list(accounts)
    told: list[Standing] = []
    for budget in budgets:
        own = bucket_of(budget, _own_subject(budget.per, by), now)
        drawn = {
            account.bucket: account
            for account in found
            if bucket_of(budget, account.bucket.subject, now) == account.bucket
            and (everybody or _is_own(account, by))
        }
        if not drawn and budget.per in (Per.TENANT, Per.PRINCIPAL):
            drawn = {own: Account(bucket=own)}
        told += [Standing(budget=budget, account=account) for account in drawn.values()]
    return told


def _own_subject(per: Per, by: Principal) -> str:
    return by.tenant if per is Per.TENANT else short(by.id)


def _is_own(account: Account, by: Principal) -> bool:
    match account.bucket.per:
        case Per.TENANT:
            return True
        case Per.PRINCIPAL:
            return account.bucket.subject == short(by.id)
        case _:
            return account.bucket.subject.startswith(owned(by, ""))


def _plain(amount: Amount | Limit) -> dict[str, float | None]:
    """As the configuration writes it: money in its unit, time in seconds."""
    return {
        "calls": amount.calls,
        "cost": None if amount.cost is None else amount.cost / MILLIONTHS,
        "wall_s": None if amount.wall_ms is None else amount.wall_ms / 1000,
        "retries": amount.retries,
    }
