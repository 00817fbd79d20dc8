"""Which chains are there, who may run them, and how far has each run come? CHN-5 to CHN-7, SAG-3."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.approvals.release import principal_of
from holdfast.chains.check import Report, check
from holdfast.chains.declared import Chain
from holdfast.chains.drive import drive
from holdfast.chains.engine import Engine
from holdfast.chains.writing import written
from holdfast.config import Config
from holdfast.gateway import chain_outcome
from holdfast.gateway.chain_choices import Choices, open_choices
from holdfast.gateway.chain_offers import ChainOffers
from holdfast.gateway.chain_plan import steps_known
from holdfast.gateway.operators import need_operator, operates
from holdfast.gateway.plans import JUDGES, PlanDesk, Planned
from holdfast.gateway.proving_chains import Assemble, Inversions
from holdfast.gateway.run_calls import RunCalls
from holdfast.lifecycle import admit, receive
from holdfast.model import defaults
from holdfast.model.call import Call, Principal, Proposal
from holdfast.model.canonical import digest
from holdfast.model.contract import CHAINS, Contract
from holdfast.model.errors import Forbidden, HoldfastError, NoEffect, NotFound, Overtaken, StoreError
from holdfast.model.observation import Observation
from holdfast.model.operation import OperationRef
from holdfast.model.run import Line, Run, RunState
from holdfast.model.schema import compile_schema
from holdfast.model.trail import Origin
from holdfast.model.verdict import Refusal
from holdfast.model.visible import visible
from holdfast.model.vocabulary import State
from holdfast.ports import Ports, Runs, partner
from holdfast.stores.payload import told

log = logging.getLogger(__name__)

LOOK_S = 0.2
"""Between two looks at a run that somebody waits for."""
AGAIN_S = (0.5, 30.0)
"""Before a run is taken up again while the store is away: at first, and at most."""

Propose = Callable[[Proposal], Awaitable[Observation]]
Stop = Callable[[Principal, OperationRef], Awaitable[None]]
Again = Callable[[Principal], Principal | None]


@dataclass(frozen=True, slots=True)
class Shown:
    """A run and its journal, as somebody may see them."""

    run: Run
    lines: tuple[Line, ...]


class Chains:
    """Hung on the gateway as `chains`."""

    def __init__(
        self,
        config: Config,
        ports: Ports,
        runs: Runs,
        engine: Callable[[], Engine],
        *,
        propose: Propose,
        stop: Stop,
        again: Again,
        explains: Callable[[Principal], bool],
        assemble: Assemble,
        plans: PlanDesk,
    ) -> None:
        """`explains`: who may know of tools that they may not use; `assemble`: makes twins."""
        self._config = config
        self._ports = ports
        self._runs = runs
        self._make = engine
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()
        self.inversions = Inversions(config, ports, runs, assemble)
        self.choices = Choices(ports, runs, self._enqueue)
        self.offers = ChainOffers(config, ports.catalog)
        self._plans = plans
        self._watched: dict[tuple[str, str], asyncio.Future[None]] = {}
        """Runs that somebody here waits for."""
        self._closing = False
        self._failing: set[str] = set()
        """What housekeeping could not do the last time."""
        self._propose, self._stop, self._again, self._explains = propose, stop, again, explains

    # --- what there is --------------------------------------------------------------------

    def declared(self) -> dict[str, Chain]:
        """The chains of the configured folder, by name."""
        return self.offers.read()

    def seen(self, by: Principal) -> dict[str, Report]:
        """Those that `by` may know of, each with what keeps `by` from running it."""
        return {
            name: self.check(by, chain) for name, chain in self.declared().items() if self._knows(by, name)
        }

    def _knows(self, by: Principal, name: str) -> bool:
        if self._explains(by):
            return True
        listing = self._ports.catalog.find(f"{CHAINS}.{name}", None)
        return listing is not None and visible(by, listing.tool.contract)

    def named(self, name: str) -> Chain:
        found = self.declared()
        if name not in found:
            there = ", ".join(map(repr, found)) or "none; set 'chains' to their folder"
            raise NotFound("; ".join([f"there is no chain {name!r}; there are {there}", *self.offers.unread]))
        return found[name]

    def check(self, by: Principal, chain: Chain) -> Report:
        """Everything that keeps `by` from running it."""
        return check(
            chain,
            lambda tool, version: self._contract(by, tool, version),
            by,
            partner=lambda *part: self._partner(by, *part),
        )

    def _contract(self, by: Principal, tool: str, version: str | None) -> Contract | None:
        listing = self._ports.catalog.find(tool, version)
        if listing is None or not (self._explains(by) or visible(by, listing.tool.contract)):
            return None
        return listing.tool.contract

    def _partner(self, by: Principal, namespace: str, session: str, role: str) -> Contract | None:
        found = partner(self._ports.catalog.list(), namespace, session, role)
        return found if found is not None and (self._explains(by) or visible(by, found)) else None

    # --- as a tool ------------------------------------------------------------------------

    async def called(self, call: Call, name: str, given: Any) -> Run:
        """The run of a call that has passed every gate."""
        report = self.offers.offered.get(name)
        if report is None:
            raise NotFound(f"there is no chain {name!r} any more")
        key, by = call.key or call.id, call.principal
        return await self._begin(by, report.chain, dict(given), key, call.origin, call.id)

    def planned(self, name: str, made_of: str) -> dict[str, Any]:
        return self.offers.plan(name, made_of)

    async def outcome(self, tenant: str, key: str) -> dict[str, Any]:
        """Whether the run of a key, as upstreams know it, did its work; raises where nobody knows yet."""
        run = await self._runs.get(tenant, chain_outcome.run_id(tenant, key))
        if run is None:
            return {"completed": False, "output": None}
        lines = await self._runs.lines(tenant, run.id)
        left = chain_outcome.staying(chain_outcome.remaining(run, lines))
        completed = run.state is RunState.COMPLETED
        if not run.state.over or (left and not completed):
            raise NoEffect(f"run {run.id!r} is {run.state.value}")
        return {"completed": completed, "output": run.output if completed else None}

    async def _settle(self, tenant: str, run_id: str) -> None:
        """Tell the ledger what became of the call that a run is, once it is over."""
        run = await self._runs.get(tenant, run_id)
        if run is None or not run.state.over:
            return
        ref = OperationRef(tenant, run.principal, f"{CHAINS}.{run.chain}", run.key)
        operation = await self._ports.ledger.find(ref)
        if operation is None or operation.state is not State.UNKNOWN:
            return
        listing = self._ports.catalog.exact(operation.ref.tool, operation.version)
        if listing is None:
            return
        lines = await self._runs.lines(tenant, run_id)
        said = chain_outcome.settled(operation, run, lines, listing.tool)
        if await self._ports.ledger.settle(operation, said):
            self._ports.telemetry.settled(operation, said)

    async def plan(self, by: Principal, chain: Chain, given: Any) -> Planned:
        """Ask people once about every step whose arguments follow from the input alone; APR-8.

        The others ask for themselves, once it is known what they are about.
        """
        self._ready(by, chain, given)
        return await self._plans.propose(by, steps_known(chain, given))

    # --- running --------------------------------------------------------------------------

    async def start(
        self, by: Principal, chain: Chain, given: Any, key: str, origin: Origin | None = None
    ) -> Run:
        """Begin a run, or find the one that was begun with this key; it is driven from now on.

        What forbids the call of the chain forbids this too. `origin`: the caller's trace, where it told one.
        """
        refused = await self._refused(by, chain, given, key)
        if refused is not None:
            raise Forbidden(f"chain {chain.name!r} is not run: {refused}")
        return await self._begin(by, chain, given, key, origin or Origin(self._ports.ids.trace()))

    async def _refused(self, by: Principal, chain: Chain, given: Any, key: str) -> str | None:
        """Why a call of the chain as it is offered would be refused; a chain of a file is no tool."""
        report, tool = self.offers.offered.get(chain.name), f"{CHAINS}.{chain.name}"
        halts = await self._ports.controls.halts()
        for name in ("all", CHAINS, tool, by.id):
            if name in halts:
                return f"{name!r} is halted {halts[name]}"
        if report is None or report.chain is not chain:
            return None
        environment = self._config.environment
        wanted = Proposal(tool=tool, arguments=given, principal=by, key=key, environment=environment)
        call = receive(wanted, self._ports)
        verdict = await admit(call, self._ports, JUDGES)
        return verdict.message if isinstance(verdict, Refusal) else None

    def _ready(self, by: Principal, chain: Chain, given: Any) -> None:
        report = self.check(by, chain)
        if not report.ok:
            raise HoldfastError(
                "\n  ".join([f"chain {chain.name!r} cannot be run", *map(str, report.faults)])
            )
        self._fits(chain, given)

    async def _begin(
        self, by: Principal, chain: Chain, given: Any, key: str, origin: Origin, call_id: str = ""
    ) -> Run:
        self._ready(by, chain, given)
        await self.inversions.require(by.tenant, chain)
        declared = written(chain)
        run = Run(
            tenant=by.tenant,
            id=chain_outcome.run_of(by.tenant, by.id, chain.name, key),
            chain=chain.name,
            version=chain.version,
            key=key,
            fingerprint=digest({"chain": declared, "input": given}),
            call_id=call_id,
            origin=origin,
            declared=declared,
            input=given,
            principal=by.id,
            wanted_by=told(by),
        )
        begun = await self._runs.begin(run)
        if await self._wants_driving(begun):
            await self._enqueue(begun)
        return begun

    async def _wants_driving(self, run: Run) -> bool:
        """Not where it is over, waits for a person who decides, or is driven already."""
        if run.state.over or (run.waits_for and not run.waits_on):
            return False
        waits = run.round == 0 or run.waits_for
        return bool(waits) or self._engine is None or not await self._engine.drives(run.tenant, run.id)

    def _fits(self, chain: Chain, given: Any) -> None:
        errors = compile_schema(dict(chain.input_schema)).errors(given)
        if errors:
            raise HoldfastError(f"the input of {chain.name!r} is wrong: {errors[0].path} {errors[0].message}")

    async def wait(self, by: Principal, run_id: str, seconds: float, beyond: int = -1) -> Run:
        """The run once it is over or waits for somebody, or as it is when time is up.

        What it waited for in round `beyond` does not count: it is about to be taken up again.
        """
        end = self._ports.clock.monotonic() + seconds
        while True:
            run, left = await self._own(by, run_id), end - self._ports.clock.monotonic()
            soon = run.goes_on_by(self._ports.clock.now() + left)
            waits = run.waits_for and run.round > beyond and not soon
            if run.state.over or waits or left <= 0:
                self._watched.pop((run.tenant, run.id), None)
                return run
            await self._ports.clock.until(self._news_of(run), min(left, LOOK_S))

    def _news_of(self, run: Run) -> "asyncio.Future[None]":
        """Done when a driver of this process lets go of the run."""
        place = (run.tenant, run.id)
        if place not in self._watched:
            self._watched[place] = asyncio.get_running_loop().create_future()
        return self._watched[place]

    def _tell(self, tenant: str, run_id: str) -> None:
        told = self._watched.pop((tenant, run_id), None)
        if told is not None and not told.done():
            told.set_result(None)

    async def look(self, by: Principal, run_id: str) -> Shown:
        run = await self._own(by, run_id)
        return Shown(run, tuple(await self._runs.lines(by.tenant, run_id)))

    async def list(self, by: Principal, limit: int = 50) -> Sequence[Run]:
        """Everybody's for an operator, else one's own; newest first."""
        own = None if operates(by, self._ports.people) else by.id
        return await self._runs.list(by.tenant, principal=own, limit=limit)

    async def resume(self, by: Principal, run_id: str) -> Run:
        """Go on with a run that waits for a person."""
        need_operator(by, self._ports.people)
        run = await self._own(by, run_id)
        if run.state.over:
            raise HoldfastError(f"run {run_id!r} is {run.state.value}; there is nothing to resume")
        await self._enqueue(run)
        return run

    async def abandon(self, by: Principal, run_id: str, note: str) -> None:
        """End a run as it stands: what was done stays done."""
        need_operator(by, self._ports.people)
        await self._own(by, run_id)
        if not await self._runs.abandon(by.tenant, run_id, by.user, note):
            raise HoldfastError(f"run {run_id!r} is over already")
        await self._settle(by.tenant, run_id)

    async def cancel(self, by: Principal, run_id: str) -> bool:
        """Stop going forward; a saga takes back what it has done. False where it is too late."""
        await self._own(by, run_id)
        if not await self._runs.cancel(by.tenant, run_id, by.user):
            return False
        run = await self._own(by, run_id)  # as it is now: it may have come to wait meanwhile
        if run.waits_for:  # nobody drives it now
            await self._enqueue(run)
        return True

    async def _own(self, by: Principal, run_id: str) -> Run:
        run = await self._runs.get(by.tenant, run_id)
        if run is None or not (run.principal == by.id or self.choices.may(by, run)):
            raise NotFound(f"there is no run {run_id!r} of yours; 'holdfast chain runs' lists them")
        return run

    # --- driving --------------------------------------------------------------------------

    async def open(self) -> None:
        """From now on runs are driven in this process too."""
        async with self._opening:
            if self._engine is None:
                engine = self._make()
                await engine.start(self._driven)
                self._engine = engine

    def stop(self) -> None:
        """No more steps: what a gateway refuses because it closes must not end a run."""
        self._closing = True

    async def close(self) -> None:
        self.stop()
        if self._engine is not None:
            await self._engine.close()

    async def tend(self) -> None:
        """Go on with runs whose waiting is over, and with those of processes that are gone.

        What cannot be done now keeps nothing else from being done.
        """
        await self._tended("calls whose runs are over are not told so", self._settle_ended)
        engine = self._engine
        if engine is not None:
            await self._tended("runs of processes that are gone are not taken over", engine.tend)
            await self._tended("runs whose waiting is over do not go on", partial(self._go_on, engine))
            await self._tended("runs that nobody drives are not taken up", partial(self._take_up, engine))

    async def _tended(self, otherwise: str, part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
            self._failing.discard(otherwise)
        except Exception as error:
            if otherwise not in self._failing:  # said once, however long it lasts
                said = None if isinstance(error, StoreError) else error
                log.error("%s for now: %s", otherwise, error, exc_info=said)
            self._failing.add(otherwise)

    async def _settle_ended(self) -> None:
        for tenant, run_id in await self._runs.ended():
            await self._settle(tenant, run_id)

    async def _go_on(self, engine: Engine) -> None:
        for tenant, run_id, number in await self._runs.due():
            await engine.enqueue(tenant, run_id, number)

    async def _take_up(self, engine: Engine) -> None:
        since = self._ports.clock.now() - defaults.CHAIN_LEASE_S
        for tenant, run_id, number in await self._runs.idle(since):
            if not await engine.drives(tenant, run_id):
                log.warning("nobody drives run %s; it is taken up again", run_id)
                await engine.enqueue(tenant, run_id, number)

    async def _enqueue(self, run: Run) -> None:
        await self.open()
        if self._engine is not None:
            await self._engine.enqueue(run.tenant, run.id, run.round)

    async def _driven(self, tenant: str, run_id: str) -> None:
        """As far as it goes; while the store is away it is tried again."""
        pause, longest = AGAIN_S
        while True:
            try:
                await self._once(tenant, run_id)
                self._tell(tenant, run_id)
                return await self._settle(tenant, run_id)
            except Overtaken:
                return None
            except StoreError as error:
                log.warning("run %s waits for the store: %s", run_id, error)
                await self._ports.clock.sleep(pause)
                pause = min(2 * pause, longest)

    async def _once(self, tenant: str, run_id: str) -> None:
        run = await self._runs.take_up(tenant, run_id)
        if run is None:
            return
        journal = self._runs.journal(run)
        by = self._again(principal_of(tenant, run.wanted_by))
        if by is None:
            text = f"a person: {run.principal!r} may no longer call here; abandon the run"
            await journal.move(run.state, waits_for=text, why=run.why)
            return
        acts = (self._propose, self._stop, lambda: self._closing)
        calls = RunCalls(run, by, self._ports, self._config.environment, *acts)
        state = await drive(run, journal, calls, self._ports.clock)
        if state is RunState.COMPENSATION_FAILED:
            log.error("run %s of chain %s could not be taken back; look at it", run.id, run.chain)
        if state is RunState.RUNNING and not run.cancelled_by and await journal.cancelled():
            await self._once(tenant, run_id)  # it came to wait before it saw that


def asked_again(begun: Run) -> int:
    """The round in which a run that was found waited for something that is looked at again now, or -1."""
    return begun.round if begun.waits_on else -1


def shown(run: Run) -> Mapping[str, Any]:
    """A run for programs to read, without what it was given."""
    return {
        "id": run.id,
        "chain": run.chain,
        "version": run.version,
        "state": run.state,
        "waits_for": run.waits_for or None,
        "why": run.why or None,
        "output": run.output,
        "started_by": run.principal,
        "key": run.key,
        "call_id": run.call_id or None,
        "trace_id": None if run.origin is None else run.origin.trace_id,
        "rounds": run.round,
    }


def told_run(seen: Shown) -> dict[str, Any]:
    """A run and the names, not the contents, of what its steps did."""
    steps = [
        {
            "name": line.name,
            "state": line.state,
            "tool": line.tool,
            "call_id": line.call_id,
            "code": line.code or None,
        }
        for line in seen.lines
    ]
    choices = [one.shown() for one in open_choices(seen.run, seen.lines)]
    return {**shown(seen.run), "steps": steps, "choices": choices}


def told_report(report: Report) -> dict[str, Any]:
    guess = report.estimate
    return {
        "chain": report.chain.name,
        "version": report.chain.version,
        "ok": report.ok,
        "faults": [{"place": fault.place, "text": fault.text} for fault in report.faults],
        "notes": [{"place": note.place, "text": note.text} for note in report.notes],
        "effect": report.effect,
        "scopes": list(report.scopes),
        "latency_ms": guess.latency_ms,
        "success": guess.success,
        "steps": guess.steps,
    }
