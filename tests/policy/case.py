"""How does a case become a call, and where are the cases?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from holdfast import Gateway, testing
from holdfast.lifecycle import GATES, admit, receive
from holdfast.model.call import Call, Principal, Proposal
from holdfast.model.vocabulary import Environment
from holdfast.policy import Bundle, CedarPolicy, load
from holdfast.policy.served import Served
from tests.policy.bank import TOOLS

HERE = Path(__file__).parent
BUNDLE = HERE / "bundle"
WEDNESDAY = datetime(2026, 3, 4, 12, tzinfo=UTC)
TO_POLICY = GATES[: [gate.__name__ for gate in GATES].index("policy") + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    case: str
    tool: str
    arguments: dict[str, Any]
    decision: str
    policies: list[str]
    user: str = "ana"
    agent: str = "bot"
    tenant: str = "default"
    roles: list[str] = field(default_factory=list)
    trust: int = 60
    environment: str = "dev"
    at: datetime = WEDNESDAY
    task: str | None = None
    need: dict[str, int] = field(default_factory=dict)
    floor: str = "none"
    says: str = ""

    @property
    def principal(self) -> Principal:
        return Principal(
            tenant=self.tenant,
            user=self.user,
            agent=self.agent,
            roles=frozenset(self.roles),
            scopes=frozenset({"**"}),
            trust=self.trust,
        )


def cases() -> list[Case]:
    return [
        Case(**said)
        for file in sorted((HERE / "cases").glob("*.yaml"))
        for said in yaml.safe_load(file.read_text())
    ]


@asynccontextmanager
async def bank(folder: Path | None = BUNDLE, **config: Any) -> AsyncIterator[Gateway]:
    """A bank in memory, under the policies of a folder."""
    chosen = {} if folder is None else {"policies": str(folder)}
    clock = testing.ManualClock(WEDNESDAY.timestamp())
    async with testing.gateway(*TOOLS, namespace="bank", config={**chosen, **config}, clock=clock) as gateway:
        yield gateway


def cedar(gateway: Gateway) -> CedarPolicy:
    served = gateway._ports.policy
    assert isinstance(served, Served)
    assert isinstance(served.current, CedarPolicy)
    return served.current


def bundle_of(text: str, name: str = "test") -> Bundle:
    return Bundle(name, {"a.cedar": text})


def written(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.cedar").write_text(text)
    return folder


def shipped() -> Bundle:
    return load(BUNDLE)


async def judged(gateway: Gateway, case: Case) -> Call:
    """The call of a case, led through the gates up to policy."""
    proposal = Proposal(
        tool=case.tool,
        arguments=case.arguments,
        principal=case.principal,
        key="k",
        task=case.task,
        environment=Environment(case.environment),
    )
    call = receive(proposal, gateway._ports)
    call.queued_at = case.at.timestamp()
    await admit(call, gateway._ports, TO_POLICY)
    return call
