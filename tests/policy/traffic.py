"""Calls of every kind, as a seed has them: who, what, when, in which session, and what became of them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast import Gateway, Principal, Status
from holdfast.model.call import Proposal
from holdfast.model.vocabulary import Environment, SafetyMode
from holdfast.policy import Bundle
from holdfast.testing import ManualClock

ROLES = ((), ("analyst",), ("treasury",), ("analyst", "treasury"))
CALLERS = [
    Principal(
        tenant=tenant,
        user=user,
        agent=agent,
        roles=frozenset(roles),
        scopes=frozenset({"**"}),
        trust=trust,
    )
    for tenant, user, roles, trust in (
        ("default", "ana", ROLES[1], 60),
        ("default", "ben", ROLES[0], 40),
        ("default", "tess", ROLES[3], 90),
        ("default", "eve", ROLES[2], 10),
        ("guests", "ana", ROLES[0], 60),
        ("guests", "guy", ROLES[2], 55),
    )
    for agent in ("bot", "cli")
]


@dataclass
class Traffic:
    """Drives a gateway, and remembers who was told something regulated."""

    clock: ManualClock
    seed: int
    steps: tuple[float, ...] = (1.0, 60.0, 3600.0)
    """Seconds between two calls."""
    seen: list[tuple[float, Principal, str | None, str | None]] = field(default_factory=list)

    async def run(self, gateway: Gateway, calls: int, bundles: Sequence[Bundle], by: Principal) -> None:
        """The bundles are put in force one after the other, evenly."""
        chance = random.Random(self.seed)
        for number in range(calls):
            if number % max(calls // len(bundles), 1) == 0:
                await gateway.policies.promote(
                    by, bundles[min(number * len(bundles) // calls, len(bundles) - 1)]
                )
            await self.clock.advance(chance.choice(self.steps))
            proposal = self._proposal(chance, number)
            at = self.clock.now()
            answer = await gateway.propose(proposal)
            if proposal.tool == "bank.export" and answer.status in (Status.DONE, Status.PREVIEW):
                self.seen.append((at, proposal.principal, proposal.session, proposal.task))

    def labels(self, facts: dict[str, Any]) -> list[str]:
        """What the caller of a decision had seen, by the rule in words: see `docs/how-to/keep-data-in.md`."""
        session, task = facts.get("session"), facts.get("task")
        for at, who, in_session, in_task in self.seen:
            if at > facts["at"] - 0.5 or who.tenant != facts["tenant"]:
                continue
            if (session is None and task is None) or (in_session is None and in_task is None):
                told = who.id == facts["principal"]
            else:
                same_session = session is not None and session == in_session
                told = who.user == facts["user"] and (same_session or (task is not None and task == in_task))
            if told:
                return ["confidential", "regulated"]
        return []

    def _proposal(self, chance: random.Random, number: int) -> Proposal:
        tool, arguments = _arguments(chance)
        key = f"k-{number}" if tool not in ("balance", "export") else None
        return Proposal(
            f"bank.{tool}",
            arguments,
            chance.choice(CALLERS),
            key=chance.choice((key, key, key, f"k-{number - 1}")) if key else None,
            session=chance.choice((None, "s-1", "s-2", "s-3")),
            task=chance.choice((None, None, "t-1", "t-2")),
            environment=chance.choice((Environment.DEV, Environment.DEV, Environment.PROD)),
            preview=key is not None and chance.random() < 0.1,
            safety_mode=SafetyMode.READ_ONLY if chance.random() < 0.05 else SafetyMode.NORMAL,
        )


def _arguments(chance: random.Random) -> tuple[str, dict[str, Any]]:
    tool = chance.choice(("balance", "export", "note", "transfer", "transfer", "close"))
    account = chance.choice(("acct-1", "acct-2", "acct-666"))
    match tool:
        case "export":
            said: dict[str, Any] = {"table": account, "limit": chance.choice((10, 999, 1001))}
            return tool, said | chance.choice(({}, {"region": "eu"}, {"region": "us"}))
        case "note":
            return tool, {"account": account, "text": "n", "card": chance.choice((None, "4111"))}
        case "transfer":
            said = {"amount": chance.choice((5, 99.5, 100, 500.25, 5000, 0.123456)), "to": [account]}
            place = {"address": {"country": chance.choice(("de", "fr")), "street": "s"}}
            return tool, said | chance.choice(({}, place))
    return tool, {"account": account}
