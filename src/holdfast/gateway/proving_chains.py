"""Was it shown that a saga's undoings undo? Where it counts, none is started before; SAG-4."""

import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from holdfast.chains.calls import StepCall
from holdfast.chains.declared import Chain
from holdfast.chains.prove import Tried, Undoable, prove, undoables
from holdfast.config import Config
from holdfast.config import Upstream as Settings
from holdfast.config.auth import Auth
from holdfast.config.console import Console
from holdfast.gateway.operators import need_operator
from holdfast.gateway.upstream_sessions import UpstreamSessionDesk
from holdfast.gateway.wiring import connected
from holdfast.identity import Identity
from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Principal
from holdfast.model.contract import Contract
from holdfast.model.errors import ConfigError, HoldfastError
from holdfast.model.observation import Observation, Status
from holdfast.model.run import Evidence, Inversion
from holdfast.model.upstream_session import SessionState
from holdfast.model.vocabulary import Environment
from holdfast.ports import Listing, Ports, Runs, partner
from holdfast.stores.memory import MemoryStore
from holdfast.system import RandomIds, SystemClock

log = logging.getLogger(__name__)

PROVER = "prover"
PEOPLE: dict[str, Any] = {
    PROVER: {"scopes": ["**"], "trust": 100},
    **{name: {"roles": ["operator", "compliance"]} for name in ("first", "second", "third")},
}
"""Whoever is asked in a twin is one of these: what happens there happens to nobody."""


class TwinGateway(Protocol):
    """Of a gateway: what trying needs of it."""

    identity: Identity
    upstream_sessions: UpstreamSessionDesk

    async def prepare(self) -> None: ...
    async def close(self) -> None: ...
    async def call(
        self, name: str, arguments: Mapping[str, Any], *, principal: Principal, key: str | None
    ) -> Observation: ...
    async def approval(self, by: Principal, approval_id: str) -> Approval | None: ...
    async def decide(self, by: Principal, approval_id: str, approve: bool) -> Approval: ...
    def catalog(self, by: Principal) -> Sequence[Listing]: ...


Assemble = Callable[..., Any]
"""Makes a `TwinGateway` around a store and upstreams that are open already."""


@dataclass(frozen=True, slots=True)
class Report:
    chain: Chain
    tried: tuple[Tried, ...]

    @property
    def ok(self) -> bool:
        return all(one.how is Inversion.SHOWN for one in self.tried)


def told_proof(report: Report) -> dict[str, Any]:
    """What was found, for programs to read."""
    steps = [
        {
            **told_undoable(one.undoable),
            "found": "nothing" if one.how is None else one.how.value,
            "text": one.text,
        }
        for one in report.tried
    ]
    return {"chain": report.chain.name, "ok": report.ok, "steps": steps}


def told_undoable(one: Undoable) -> dict[str, str]:
    return {"step": one.step.id, "tool": one.tool, "undone_by": one.undone_by}


class Inversions:
    """Hung on the chains of a gateway as `inversions`."""

    def __init__(self, config: Config, ports: Ports, runs: Runs, assemble: Assemble) -> None:
        self._config = config
        self._ports = ports
        self._runs = runs
        self._assemble = assemble

    # --- looking --------------------------------------------------------------------------

    async def open(self, tenant: str, chain: Chain) -> list[tuple[Undoable, Evidence | None]]:
        """The undoings that nobody has shown or accepted, with what is known of them."""
        wanted = undoables(chain, self._contract)
        known = await self._runs.attested(tenant, [one.digest for one in wanted])
        found = [(one, known.get(one.digest)) for one in wanted]
        return [(one, seen) for one, seen in found if seen is None or seen.how is Inversion.REFUTED]

    async def require(self, tenant: str, chain: Chain) -> None:
        """Raises HoldfastError for a saga that is not to be started; in dev it is started with a warning."""
        missing = await self.open(tenant, chain)
        if not missing:
            return
        told = [_told(one, seen) for one, seen in missing]
        if self._config.environment is Environment.DEV:
            log.warning("chain %s: %s; in staging and prod it would not start", chain.name, "; ".join(told))
            return
        then = "try it with 'holdfast chain prove', or have an operator take it with 'holdfast chain accept'"
        raise HoldfastError("\n  ".join([f"chain {chain.name!r} is not started; {then}", *told]))

    # --- trying, and deciding without -----------------------------------------------------

    async def prove(self, by: Principal, chain: Chain, given: Any) -> Report:
        """Do and undo each step in a twin; what came of it is kept, and on record."""
        need_operator(by, self._ports.people)
        wanted = undoables(chain, self._contract)
        if not wanted:
            return Report(chain, ())
        async with self._twin(wanted) as (twin, store):
            calls = _TwinCalls(twin)
            tried = await prove(chain, given, wanted, calls, store.runs, SystemClock())
        await self._runs.attest(by.tenant, [_evidence(chain, one, by.user) for one in tried if one.how])
        return Report(chain, tuple(tried))

    async def accept(self, by: Principal, chain: Chain, note: str) -> list[Undoable]:
        """A person takes it on themselves that these undo what they should; which those are."""
        need_operator(by, self._ports.people)
        if not note.strip():
            raise HoldfastError("say why it is accepted; whoever reads the record later needs it")
        missing = [one for one, _ in await self.open(by.tenant, chain)]
        said = [
            Evidence(
                digest=one.digest,
                how=Inversion.ACCEPTED,
                chain=chain.name,
                step=one.step.id,
                by=by.user,
                note=note,
            )
            for one in missing
        ]
        await self._runs.attest(by.tenant, said)
        return missing

    def _contract(self, tool: str, version: str | None) -> Contract | None:
        listing = self._ports.catalog.find(tool, version)
        return None if listing is None else listing.tool.contract

    # --- the twin -------------------------------------------------------------------------

    @asynccontextmanager
    async def _twin(self, wanted: Sequence[Undoable]) -> AsyncIterator[tuple[TwinGateway, MemoryStore]]:
        """A gateway of its own around copies of the tools, all of it gone afterwards."""
        touched = sorted({tool.partition(".")[0] for one in wanted for tool in (one.tool, one.undone_by)})
        lacking = [name for name in touched if self._config.upstreams[name].twin is None]
        if lacking:
            raise ConfigError(
                f"nothing can be shown: {', '.join(map(repr, lacking))} has no twin; "
                "name one under 'upstreams.NAME.twin', or have the chain accepted"
            )
        with tempfile.TemporaryDirectory(prefix="holdfast-twin-") as scratch:
            config = self._twin_config(Path(scratch))
            clock = SystemClock()
            store = MemoryStore(clock)
            twin: TwinGateway = self._assemble(config, store, connected(config), clock=clock, ids=RandomIds())
            try:
                await twin.prepare()
                self._same(twin, wanted)
                yield twin, store
            finally:
                await twin.close()

    def _twin_config(self, scratch: Path) -> Config:
        twins = {name: _twin_of(one) for name, one in self._config.upstreams.items() if one.twin is not None}
        return self._config.model_copy(
            update={
                "upstreams": twins,
                "environment": Environment.DEV,
                "store": f"sqlite:///{scratch}/twin.db",
                "lock": str(scratch / "twin.lock"),
                "auth": Auth.model_validate({"mode": "local", "people": PEOPLE}),
                "console": Console(enabled=False),
                "policies": None,
                "chains": None,
                "fallbacks": {},
                "channels": {},
                "pins": {},
            }
        )

    def _same(self, twin: TwinGateway, wanted: Sequence[Undoable]) -> None:
        """What is shown of another tool is shown of that one only."""
        there = {
            one.tool.contract.tool: one.tool.contract.digest
            for one in twin.catalog(twin.identity.at_terminal(PROVER))
        }
        for tool in dict.fromkeys(name for one in wanted for name in (one.tool, one.undone_by)):
            contract = self._contract(tool, None)
            if contract is None or there.get(tool) != contract.digest:
                raise ConfigError(
                    f"nothing can be shown: the twin has no {tool!r} with the same contract; make them alike"
                )


class _TwinCalls:
    """Calls in a twin, where the questions answer themselves; implements `Calls`."""

    def __init__(self, twin: TwinGateway) -> None:
        self._twin = twin
        self._by = twin.identity.at_terminal(PROVER)

    def contract(self, tool: str, version: str | None) -> Contract | None:
        found = (one for one in self._twin.catalog(self._by) if one.tool.contract.tool == tool)
        listing = next(found, None)
        return None if listing is None else listing.tool.contract

    async def call(self, wanted: StepCall) -> Observation:
        asked = partial(
            self._twin.call, wanted.tool, wanted.arguments, principal=self._by, key=wanted.key or None
        )
        seen = await asked()
        if seen.status is Status.HELD and seen.approval is not None:
            await self._agree(seen.approval.id)
            seen = await asked()
        return seen

    async def _agree(self, approval_id: str) -> None:
        for name in PEOPLE:
            person = self._twin.identity.at_terminal(name)
            asked = await self._twin.approval(person, approval_id)
            if asked is None or asked.answer is not Answer.PENDING or asked.role_of(person) is None:
                continue
            await self._twin.decide(person, approval_id, True)

    def partner(self, namespace: str, session: str, role: str) -> Contract | None:
        return partner(self._twin.catalog(self._by), namespace, session, role)

    async def roll_back(self, session_id: str, why: str) -> SessionState | None:
        return (await self._twin.upstream_sessions.end(self._by, session_id)).state

    async def became(self, key: str, tool: str) -> Observation | None:
        """Nothing is given up here."""
        return None

    async def arguments_of(self, key: str, tool: str) -> Any:
        """Nothing falls back here."""
        return None

    async def taken_back(self, key: str, tool: str, by: str) -> None:
        """Nobody asks after calls of a twin."""

    async def stop(self, key: str, tool: str) -> None:
        """What is tried is tried to its end."""


def _twin_of(settings: Settings) -> Settings:
    twin = settings.twin
    assert twin is not None  # noqa: S101  # whoever asks has looked
    if twin.functions is not None:
        return settings.model_copy(update={"functions": twin.functions, "twin": None})
    server = twin.mcp
    if server is None and settings.mcp is not None:
        server = settings.mcp.model_copy(update={"env": {**settings.mcp.env, **twin.env}})
    return settings.model_copy(update={"mcp": server, "twin": None})


def _evidence(chain: Chain, tried: Tried, by: str) -> Evidence:
    one = tried.undoable
    assert tried.how is not None  # noqa: S101  # whoever asks has looked
    return Evidence(digest=one.digest, how=tried.how, chain=chain.name, step=one.step.id, by=by)


def _told(one: Undoable, seen: Evidence | None) -> str:
    if seen is None:
        return f"nobody has shown that {one.undone_by!r} takes step {one.step.id!r} ({one.tool!r}) back"
    return f"it was shown that {one.undone_by!r} does not take step {one.step.id!r} ({one.tool!r}) back"
