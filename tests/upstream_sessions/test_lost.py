"""A store that was lost knew how a session ended: does the one in its place?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast import Gateway, Observation, Principal, Status
from holdfast import config as configuration
from holdfast.gateway import backups
from holdfast.gateway.recovery import Wish
from holdfast.model.upstream_session import SessionState
from holdfast.model.vocabulary import State
from tests.requirements import requirement
from tests.stored import DURABLE, place, url_of
from tests.upstream_sessions.bank import Bank, bank

ADA = Principal(user="ada", agent="bot", scopes=frozenset({"**"}), trust=90)
OLGA = Principal(user="olga", agent="cli", roles=frozenset({"operator"}))
pytestmark = pytest.mark.parametrize("kind", DURABLE)


@dataclass(frozen=True, slots=True)
class _People:
    def holders(self, tenant: str, role: str) -> frozenset[str]:
        return frozenset({"olga"})

    def operated(self, tenant: str) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Counter:
    """Each thing happens in a process of its own, as it were."""

    bank: Bank
    config: configuration.Config

    async def call(self, tool: str, key: str, **arguments: Any) -> Observation:
        async with Gateway.open(self.config) as gateway:
            seen = await gateway.call(f"bank.{tool}", arguments, principal=ADA, key=key)
            assert seen.status is Status.DONE, seen
            return seen

    async def found(self, session: str, call_id: str) -> tuple[SessionState, State]:
        async with Gateway.open(self.config) as gateway:
            await gateway.tidy()
            shown = await gateway.upstream_sessions.look(ADA, session)
            operation = await gateway._ports.ledger.find_call("default", call_id)
            assert operation is not None
            return shown.session.state, operation.state


@asynccontextmanager
async def counter(kind: str, folder: Path) -> AsyncIterator[Counter]:
    async with place(kind, folder), bank(folder) as server:
        yield Counter(server, configuration.load(server.configured(url_of(kind, folder))))


@requirement("EXE-8")
@requirement("PPL-5")
async def test_what_was_committed_after_the_backup_is_committed_once_that_is_known(
    kind: str, tmp_path: Path
) -> None:
    async with counter(kind, tmp_path) as here:
        tx = (await here.call("begin", "b-1")).data["transaction"]
        step = await here.call("enter", "e-1", transaction=tx, account="ana", cents=500)
        async with Gateway.open(here.config) as gateway:
            await gateway.back_up(OLGA, tmp_path / "noon")
        await here.call("commit", "c-1", transaction=tx)
        later = (await here.call("begin", "b-2")).data["transaction"]
        await backups.restore(here.config, tmp_path / "noon", OLGA, _People())
        assert (await here.found(tx, step.call_id))[0] is SessionState.OPEN
        async with Gateway.open(here.config) as gateway:
            await gateway.recover(OLGA, Wish((), nothing_left=False, note=""))
        assert await here.found(tx, step.call_id) == (SessionState.COMMITTED, State.COMMITTED)
        assert here.bank.accounts() == {"ana": 500}
        await here.call("enter", "e-2", transaction=later, account="bob", cents=5)
        await here.call("commit", "c-2", transaction=later)
        assert here.bank.accounts() == {"ana": 500, "bob": 5}
