"""Opens a configuration, wires the ports, and carries proposals through the life of a call."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from holdfast import config as configuration
from holdfast import settlement
from holdfast.approvals import answers
from holdfast.config import Config
from holdfast.gateway import auditing, backups, handover, ladder, secrets, turned_away
from holdfast.gateway.ending import LAST_S
from holdfast.gateway.guide import Guide
from holdfast.gateway.held import held
from holdfast.gateway.housekeeping import Housekeeping
from holdfast.gateway.inbox import Inbox
from holdfast.gateway.limits import Standing, standings
from holdfast.gateway.log_desk import LogDesk
from holdfast.gateway.operators import need_operator, operates
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.policy_desk import PolicyDesk
from holdfast.gateway.readiness import Readiness
from holdfast.gateway.recovery import Recovered, Recovery, Wish
from holdfast.gateway.sealing import seal, unseal
from holdfast.gateway.storing import store_of
from holdfast.gateway.timeline import Timeline
from holdfast.gateway.underway import Underway, stop
from holdfast.gateway.unwritten import unwritten
from holdfast.gateway.watching import view_of
from holdfast.gateway.why import SCOPE as EXPLAIN
from holdfast.gateway.why import Explanation
from holdfast.gateway.why import why as explanation
from holdfast.gateway.wiring import Adapt, Parts, Store, assemble, connected, functions
from holdfast.lifecycle import receive
from holdfast.model.access import ELEVATION
from holdfast.model.approval import Answer, Approval
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Call, Principal, Proposal
from holdfast.model.contract import CHAINS
from holdfast.model.errors import HoldfastError, NotFound
from holdfast.model.fields import FieldError
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import Operation, OperationRef
from holdfast.model.peer import Peer
from holdfast.model.record import Use
from holdfast.model.restored import NOT_BY_HAND, RESTORED
from holdfast.model.scopes import covers
from holdfast.model.visible import visible
from holdfast.model.vocabulary import State
from holdfast.ports import Listing, Upstream
from holdfast.stores.backup.manifest import Manifest
from holdfast.system import RandomIds, SystemClock
from holdfast.telemetry.exposition import Exposition, View

if TYPE_CHECKING:
    from holdfast.catalog.imports.lock import Pending
    from holdfast.gateway.chains import Chains
    from holdfast.gateway.native import Native

log = logging.getLogger(__name__)

Source = Config | Mapping[str, Any] | str | os.PathLike[str]
"""A configuration, a mapping of its keys, or the file it is in."""

DRAIN_S = 10.0
"""How long closing waits for calls under way; what is left then is found again by the sweep."""


class Gateway:
    """One open gateway. `Gateway.open` makes one from a configuration; `holdfast.testing` in memory."""

    def __init__(self, parts: Parts, config: Config) -> None:
        self.config = config
        self.identity = parts.identity
        self.access = parts.access
        self.keys = parts.keys
        self.grants = parts.grants
        self.notices = parts.notices
        self._runs = parts.runs
        self._chain_engine = parts.chain_engine
        self._chain_upstream = parts.chain_upstream
        self.rules = parts.rules
        self.plans = parts.plans
        self.upstreams = parts.upstreams
        self.egress = parts.egress
        self.credentials = parts.runtime.credentials
        self.subjects = parts.subjects
        self._ports = parts.ports
        self._runtime = parts.runtime
        self._reports = parts.reports
        self.history = parts.history
        """What other policies would have decided."""
        self.policies = PolicyDesk(config, parts.ports, parts.bundles, parts.history)
        self.views = parts.views
        """Calls as people look at them."""
        self.health = parts.health
        self.alerts = parts.alerts
        self.costs = parts.costs
        self.jobs = parts.jobs
        """What goes on at upstreams without a call."""
        self.jobs.attach(self._unattended, parts.identity.again)
        self.labels = parts.labels
        """What sessions have seen."""
        self.upstream_sessions = parts.upstream_sessions
        """What upstreams keep open for callers."""
        self.upstream_sessions.bind(parts.ports, self._unattended, parts.identity.again)
        self.sessions = parts.sessions
        """Who is signed in to the console."""
        self.openid = parts.openid
        self.guide = Guide(config, parts.identity, parts.views, self.propose, self.approval)
        """The first call that people see here."""
        self._lives = parts.lives
        self._watching = parts.watching
        self._auditing = parts.auditing
        self.log = LogDesk(config, parts.identity, parts.ports, parts.bundles, parts.auditing)
        self.timeline = Timeline(parts.ports, parts.auditing, self._observed, self._theirs)
        """What happened to one call, and what proves it."""
        self.delegation = parts.delegation
        self.fallbacks = parts.fallbacks
        """Who is asked when a tool cannot answer."""
        self._discovery = parts.discovery
        self._retiring = parts.retiring
        self._pushing: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._under_way = Underway(parts)
        self._house = Housekeeping(
            parts, config, self.policies, self._under_way, self._unattended, self._running_chains
        )
        self._readiness = Readiness(parts.ports)
        self._draining = False
        self.inbox = Inbox(parts.ports, self.decide, lambda: self._draining)
        """Questions as people answer them on a screen."""
        self._drain_s = DRAIN_S
        self._closing = False
        self._housekeeping: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, config: Source, *, adapt: Adapt | None = None, connect: bool = True
    ) -> AsyncIterator["Gateway"]:
        """Open what the configuration describes, and close it again at the end.

        Without `connect` MCP servers are taken from the lock file and started when they are first needed.
        """
        ready = _configured(config)
        loaded = functions(ready)
        async with store_of(ready, SystemClock()) as store:
            signs = await asyncio.to_thread(auditing.notary, ready)
            egress = Egress(ready)
            ports = {"clock": store.clock, "ids": RandomIds(), "adapt": adapt, "notary": signs}
            proofs = secrets.proofs(ready, store.clock, egress, store.secrets)
            upstreams = connected(ready, loaded, store.tokens, egress, proofs)
            gateway = cls.assemble(ready, store, upstreams, egress=egress, proofs=proofs, **ports)
            try:
                await gateway.prepare(connect=connect)
                yield gateway.start()
            finally:
                await gateway.close()

    @classmethod
    def assemble(
        cls, config: Source, store: Store, upstreams: Mapping[str, Upstream], **ports: Any
    ) -> "Gateway":
        """A gateway around parts that are open already; `start` and `close` are the caller's."""
        ready = _configured(config)
        return cls(assemble(ready, store, upstreams, **ports), ready)

    async def prepare(self, *, connect: bool = True) -> None:
        """Find out what there is to serve; put the configured policies in force where none ever were."""
        await self._auditing.notice()
        await self.access.follow()
        if connect and self.identity.issuer_keys is not None:  # where it is away, callers wait for it
            await self.identity.issuer_keys.look()
        if self._discovery is not None:
            await self._discovery.open(connect=connect)
            self.policies.refit()
        self._house.offer_chains()
        ladder.check(self.fallbacks.ladders, self._ports.catalog)
        self.jobs.check(self.config.base_url)
        await self._retiring.tend()
        await self.policies.open()
        for note in self.policies.notes():
            log.warning("%s", note)
        if connect and self.config.chains is not None:
            await self.chains.open()

    def start(self) -> "Gateway":
        if self._housekeeping is None:
            self._housekeeping = asyncio.create_task(self._house.keep(), name="holdfast-housekeeping")
            pushing = self._watching.keep_pushing(self._ports.clock, self._look)
            self._pushing = asyncio.create_task(pushing, name="holdfast-metrics")
            self._following = asyncio.create_task(self.access.keep_following(), name="holdfast-access")
            self._telling = asyncio.create_task(self.notices.keep_telling(), name="holdfast-notices")
        return self

    async def close(self) -> None:
        """Take nothing new, let what runs finish, and stop."""
        await self._house.released(self._drain_s)
        if "chains" in self.__dict__:
            self.chains.stop()
        self.jobs.close_soon()
        await self.upstream_sessions.close(self._drain_s)
        self._closing = self._draining = True
        self._readiness.close()
        for task in (self._housekeeping, self._pushing, self._following, self._telling):
            if task is not None:
                task.cancel()
        if "chains" in self.__dict__:
            await self.chains.close()
        if under_way := self._under_way.tasks:
            await asyncio.wait(under_way, timeout=self._drain_s)
        await self.jobs.close()
        await self.inbox.pulse.close()
        await self.notices.close()
        await self.identity.close()
        if self._discovery is not None:
            await self._discovery.close()
        await self._runtime.close(self._drain_s)
        await self._house.keep_log(sign_now=True)
        await self._watching.close(self._look)

    def drain(self) -> None:
        """Say from now on that calls belong elsewhere; they are still taken until `close`."""
        self._draining = True

    def answer_waiting(self) -> None:
        """The time of a drain is over: whoever still waits is told what can be said by now.

        What has acted goes on as long as this process lives; then another one settles it.
        """
        self._drain_s = LAST_S
        self._under_way.cut_short()

    @property
    def draining(self) -> bool:
        """Whether whoever listens here should listen elsewhere."""
        return self._draining

    @property
    def unfinished(self) -> int:
        """Calls and late answers under way; after `close`, what another process will settle."""
        return len(self._under_way) + len(self._runtime.late)

    # --- calls ----------------------------------------------------------------------------

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | bytes | None = None,
        *,
        principal: Principal | None = None,
        **details: Any,
    ) -> Observation:
        """Propose one call: `key`, `version`, `task`, `step`, `deadline_ms`, `if_match`, `preview`, ..."""
        return await self.propose(
            Proposal(
                tool=name,
                arguments={} if arguments is None else arguments,
                principal=principal or self.identity.at_terminal(),
                environment=self.config.environment,
                **details,
            )
        )

    async def propose(self, proposal: Proposal, *, attended: bool = True) -> Observation:
        """Carry a proposal through its life.

        Who proposes with a `request_key` for a client that waits (`attended`) says afterwards what became of
        the answer: `delivered` or `abandoned`. To be cancelled while waiting is to be abandoned.
        """
        if (unwritable := unwritten(proposal)) is not None:
            return self.unparsed(unwritable.message, (unwritable,), structural=True)
        call = receive(proposal, self._ports)
        refused = self._ingress(call)
        if refused is not None:
            self._ports.telemetry.turned_away(refused, call.principal.tenant, "ingress")
            return refused
        ladders = self.fallbacks.ladders
        levels = ladders.get(proposal.tool.partition("@")[0]) if ladders else None
        if levels is None:
            return await self._carry(call, attended=attended)
        return await self.fallbacks.answer(levels, call, partial(self._carry, attended=attended))

    async def _carry(self, call: Call, *, attended: bool) -> Observation:
        if self._discovery is not None:
            await self._discovery.look_for(call.proposal.tool)
        call.waited_for = attended and call.proposal.request_key is not None
        observation = await self._under_way.carry(call)
        if not call.recorded:
            self._readiness.refused()
        if observation.status is Status.HELD:
            self.notices.wake()
        return observation

    def left(self, peer: Peer) -> None:
        """A client went and took nothing back: what it called goes on, for its next equal call to get."""
        self._under_way.leave(peer)

    async def delivered(self, by: Principal, call_id: str) -> None:
        """The client of a call with a `request_key` has its answer; nothing to be told of other calls."""
        await handover.delivered(by, call_id, self._ports)

    async def fetched(self, by: Principal, call_id: str) -> None:
        """A client that did not wait has the outcome: its next equal call is a new operation."""
        await handover.fetched(by, call_id, self._ports)

    async def abandoned(self, by: Principal, call_id: str) -> None:
        """The answer of a call with a `request_key` reached nobody: the next equal call gets it."""
        await handover.abandoned(by, call_id, self._ports)

    def unparsed(
        self, message: str, field_errors: tuple[FieldError, ...] = (), *, structural: bool = False
    ) -> Observation:
        """What a server answers when a body never became a proposal."""
        return turned_away.unparsed(self._ports.ids, message, field_errors, structural=structural)

    def unproposed(self, by: Principal, observation: Observation) -> None:
        """A server says that what it could not parse would have been a call."""
        self._ports.telemetry.turned_away(observation, by.tenant, "parse")

    def _ingress(self, call: Call) -> Observation | None:
        """Before everything else, and without a record: this is what keeps the rest standing."""
        wait_ms = self._ports.ingress.admit(call.principal)
        if self._closing:
            return turned_away.closing(call)
        return None if wait_ms is None else turned_away.too_many(call, wait_ms)

    # --- looking --------------------------------------------------------------------------

    def tools(self, principal: Principal) -> list[Listing]:
        """What this principal may use, and nothing else."""
        return [
            listing
            for listing in self._ports.catalog.list()
            if visible(principal, listing.tool.contract)
            and not _inner(listing)
            and not (self._discovery is not None and self._discovery.native.unlisted(listing))
        ]

    def catalog(self, by: Principal) -> list[Listing]:
        """Every tool for an operator, who may look at more than they may use; else what `by` may use."""
        if not self.operates(by):
            return self.tools(by)
        return [listing for listing in self._ports.catalog.list() if not _inner(listing)]

    def may_use(self, principal: Principal, tool: str) -> bool:
        """Whether a tool is there for this principal, listed or not."""
        found = self._ports.catalog.find(tool, None)
        if found is None:
            return False
        return visible(principal, found.tool.contract)

    async def find(self, principal: Principal, call_id: str) -> Observation | None:
        """The call as the ledger knows it now; None when it is unknown or not yours."""
        found = await self._ports.ledger.find_call(principal.tenant, call_id)
        if found is None or not self._theirs(principal, found.ref.principal, found.ref.tool):
            return None
        return await self._observed(found)

    async def _observed(self, found: Operation) -> Observation:
        return await (held(found, self._ports) if found.state is State.HELD else self.jobs.told(found))

    def findings(self) -> list[str]:
        """What `doctor` should tell about the catalog."""
        found = [*self._reports, *([] if self._discovery is None else self._discovery.reports)]
        found += [*ladder.reports(self.config, self._ports.catalog), *self.upstream_sessions.findings()]
        return found if self.config.chains is None else [*found, *self.chains.offers.reports]

    @property
    def native(self) -> "Native | None":
        """What MCP servers offer beside tools, where there are any."""
        return None if self._discovery is None else self._discovery.native

    async def look_again(self, namespace: str) -> None:
        """Ask an MCP server for its list, for somebody who missed a tool of it; REG-2."""
        if self._discovery is not None and namespace in self._discovery.native.prefixes:
            await self._discovery.look_again(namespace)

    def seal(self, principal: Principal, purpose: str, said: Mapping[str, Any], life_s: float) -> str:
        """A text that only this principal can hand back, and nobody else can read or change."""
        return seal(self._ports.secrets, self._ports.clock, principal, purpose, said, life_s)

    async def ready_to_seal(self, principal: Principal) -> None:
        """Their tenant's key may still have to be made, for which nobody else is kept waiting."""
        await self._ports.secrets.ready(principal.tenant)

    def unseal(self, principal: Principal, purpose: str, sealed: str) -> dict[str, Any] | None:
        return unseal(self._ports.secrets, self._ports.clock, principal, purpose, sealed)

    async def metrics(self, by: Principal) -> bytes:
        """What was counted so far, as Prometheus text: everybody's, or what `by` may see of it."""
        return (await self._look(view_of(by, self.config, self.identity))).text()

    async def _look(self, view: View | None = None) -> Exposition:
        whole = view or View(labelled=self.config.telemetry.tenant_label)
        tenants = sorted(self.identity.tenants() | {"default"})
        under_way = len(self._under_way)
        found = self.alerts.gauges
        return await self._watching.shown(whole, self._ports, self._runtime, under_way, tenants, found)

    async def ready(self) -> dict[str, str | bool]:
        """Whether calls can be taken now; see `readiness` for the members. Never takes long."""
        state, detail = ("closed", "") if self._closing else await self._readiness.store()
        said: dict[str, str | bool] = {"ready": state == "ok" and not self._draining, "store": state}
        said |= {"draining": self._draining, "policy": self._ports.policy.version}
        return said | {"detail": detail} if detail else said

    async def why(
        self, principal: Principal, tool: str, arguments: Mapping[str, Any] | str | bytes | None = None
    ) -> Explanation:
        """Why this caller may not do that, and the smallest change that would let them.

        In full for those who hold `holdfast:explain`, operators, and people who are here themselves; others
        learn whether it is allowed and whom to ask.
        """
        proposal = Proposal(
            tool=tool,
            arguments={} if arguments is None else arguments,
            principal=principal,
            environment=self.config.environment,
            preview=True,
        )
        told = self._explains(principal)
        return await explanation(proposal, self._ports, blind=arguments is None, told=told)

    def _explains(self, by: Principal) -> bool:
        """Whether they may know what they may not use."""
        return covers(by.scopes, EXPLAIN) or "user" in by.roles or self.operates(by)

    @cached_property
    def chains(self) -> "Chains":
        """Several calls declared as one; imported only where somebody asks."""
        from holdfast.gateway.chains import Chains

        chains = Chains(
            self.config,
            self._ports,
            self._runs,
            self._chain_engine,
            propose=self._unattended,
            stop=self._give_up,
            again=self.identity.again,
            explains=self._explains,
            assemble=Gateway.assemble,
            plans=self.plans,
        )
        self._chain_upstream.bind(chains)
        return chains

    def _running_chains(self) -> "Chains | None":
        """None where there are none, so that nobody imports them in vain."""
        return self.chains if self.config.chains is not None or "chains" in self.__dict__ else None

    async def _give_up(self, by: Principal, ref: OperationRef) -> None:
        """Stop what was called under a key, where it has not acted; a read is in no ledger."""
        for call in self._under_way:
            said = call.proposal
            if (call.principal.tenant, call.principal.id, said.tool, said.key) == tuple(ref):
                stop(call)
                return
        operation = await self._ports.ledger.find(ref)
        if operation is not None:
            await self.cancel(by, operation.call_id)

    async def unknown(self) -> int:
        """Operations whose outcome nobody knows, of all tenants."""
        return 0 if self._lives is None else await self._lives.unknown()

    # --- operating ------------------------------------------------------------------------

    async def settle(
        self, by: Principal, call_id: str, outcome: Literal["committed", "no-effect"], note: str
    ) -> Observation:
        """A person says what became of an operation whose outcome is unknown."""
        self._need_operator(by)
        found = await self._own(by, call_id)
        if found.orphaned:
            found = await settlement.give_up(found, self._ports)
        if found.state is not State.UNKNOWN:
            raise HoldfastError(
                f"call {call_id!r} is {found.state.value}; only an unknown outcome can be settled"
            )
        said = settlement.by_person(found, outcome == "committed", by.user, note)
        if not await self._ports.ledger.settle(found, said):
            raise HoldfastError(f"call {call_id!r} changed in the meantime; look at it again")
        self._ports.telemetry.settled(found, said)
        return await self.find(by, call_id) or settlement.current(found)

    async def halt(self, by: Principal, target: str, note: str = "") -> None:
        """Stop `all`, an upstream, a tool or a principal, at once in every process."""
        self._need_operator(by)
        _by_hand(target)
        self._known_target(by, target)
        await self._ports.controls.halt(target, by.user, note)

    async def resume(self, by: Principal, target: str) -> bool:
        self._need_operator(by)
        _by_hand(target)
        return self.may_name(by, target) and await self._ports.controls.resume(target, by.user)

    async def halts(self) -> Mapping[str, str]:
        return await self._ports.controls.halts()

    async def cancel(self, by: Principal, call_id: str) -> str:
        """Stop a call that has not acted yet; `cancelled`, `requested` of another process, or `too late`."""
        for call in self._under_way:
            tool = call.proposal.tool.partition("@")[0]
            ours = call.principal.tenant == by.tenant and self._theirs(by, call.principal.id, tool)
            if call.id == call_id and ours:
                became = stop(call)
                if became == "too late" and call.tool.job is not None:  # what it submitted may be stopped yet
                    return "requested" if await self._stop_job(by, call_id) else became
                return became
        found = await self._own(by, call_id)
        if await self.jobs.cancel(found, by):
            return "requested"
        if found.state is State.HELD:
            said = settlement.cancelled(found, by.user)
            return "cancelled" if await self._ports.ledger.settle(found, said) else "too late"
        if not found.state.running:
            return "too late"
        await self._ports.controls.request_cancel(by.tenant, call_id, by.user)
        return "requested"

    async def _stop_job(self, by: Principal, call_id: str) -> bool:
        found = await self._ports.ledger.find_call(by.tenant, call_id)
        return found is not None and await self.jobs.cancel(found, by)

    async def approvals(self, by: Principal) -> Sequence[Approval]:
        """Open questions in this tenant that `by` asked or could answer."""
        return await answers.listed(by, self._ports)

    async def approval(self, by: Principal, approval_id: str) -> Approval | None:
        """One question, open or answered; None when there is none that `by` may see."""
        return await answers.looked_up(by, approval_id, self._ports)

    async def decide(self, by: Principal, approval_id: str, approve: bool, note: str = "") -> Approval:
        """Answer an approval; nobody above `user` answers their own."""
        answered = await answers.decide(by, approval_id, approve, note, self._ports)
        self._ports.telemetry.decided(answered)
        self.notices.answered(answered)
        if answered.ref.tool == ELEVATION:
            await self.access.follow()
        if answered.answer is Answer.APPROVED and answered.release == "gateway":
            self._house.release(answered)
        return answered

    async def _unattended(self, proposal: Proposal) -> Observation:
        return await self.propose(proposal, attended=False)

    async def budgets(self, by: Principal) -> list[Standing]:
        """What is left of every budget: everybody's for an operator, else one's own."""
        accounts, now = await self._ports.ledger.budgets(by.tenant), self._ports.clock.now()
        return standings(self._ports.budgets, accounts, by, self.operates(by), now)

    def _theirs(self, by: Principal, principal: str, tool: str) -> bool:
        """Whether a call is theirs to look at; what was delegated reaches as far back as forward."""
        own = principal == by.id and (by.bounds is UNBOUND or self.may_use(by, tool))
        return own or self.operates(by)

    def operates(self, by: Principal) -> bool:
        """Whether what only operators may do is theirs to do."""
        return operates(by, self._ports.people)

    def _need_operator(self, by: Principal) -> None:
        need_operator(by, self._ports.people)

    def may_name(self, by: Principal, target: str) -> bool:
        """False for a principal who is not of this tenant: here, or anywhere."""
        if "/" not in target or self.identity.only_tenant(by.tenant):
            return True
        return unquote(target.partition("/")[0]) in self.identity.holders(by.tenant, "user")

    def _known_target(self, by: Principal, target: str) -> None:
        listings = self._ports.catalog.list()
        known = (
            {"all"}
            | {entry.upstream for entry in listings}
            | {entry.tool.contract.tool for entry in listings}
        )
        if target not in known and not ("/" in target and self.may_name(by, target)):
            raise NotFound(
                f"nothing here is called {target!r}; halt 'all', an upstream, a tool or 'user/agent'"
            )

    async def _own(self, by: Principal, call_id: str) -> Operation:
        found = await self._ports.ledger.find_call(by.tenant, call_id)
        if found is None or not self._theirs(by, found.ref.principal, found.ref.tool):
            raise NotFound(f"there is no call {call_id!r} of yours in the ledger")
        return found

    # --- imported tools -------------------------------------------------------------------

    def changes(self, by: Principal) -> "dict[str, dict[str, Pending]]":
        """Imported tools that changed and wait for an operator, by upstream and tool."""
        self._need_operator(by)
        return {} if self._discovery is None else self._discovery.pending()

    async def accept(self, by: Principal, namespace: str, tool: str, digest: str | None = None) -> None:
        """Take a changed tool as it is now; with `digest`, only what the operator was shown."""
        self._need_operator(by)
        if self._discovery is None:
            raise NotFound("no imported tools are configured, so nothing waits to be accepted")
        await self._discovery.accept(namespace, tool, by.user, digest)

    async def usage(self, by: Principal, since: float) -> Sequence[Use]:
        """Who ran which version of which tool since a time: everybody's for an operator, else one's own."""
        uses = await self._auditing.usage(since)
        if self.operates(by):
            return [use for use in uses if use.tenant == by.tenant]
        return [use for use in uses if (use.tenant, use.caller) == (by.tenant, by.user)]

    # --- the store and the house ------------------------------------------------------------------------

    async def back_up(self, by: Principal, path: Path) -> Manifest:
        """Write everything of this moment to a file, while calls go on."""
        self._need_operator(by)
        await self._auditing.note(auditing.ALL_TENANTS, "backup", by.user)
        await self._auditing.gather()
        return await backups.take(self.config, path, self._ports)

    async def recover(self, by: Principal, wish: Wish) -> Recovered:
        """Find out what happened since the backup this store was restored from; then writes go on."""
        self._need_operator(by)
        if self._lives is None:
            raise NotFound("this store ends with the process; there is nothing to recover")
        return await Recovery(self.config, self._lives, self._ports, self._auditing).run(by.user, wish)

    async def tidy(self, *, forget: bool = False) -> int:
        """One round of housekeeping, which goes on by itself too; how many operations it settled."""
        return await self._house.tidy(forget=forget)


def _inner(listing: Listing) -> bool:
    """A reading of the gateway's own about chains."""
    return listing.upstream == CHAINS and listing.tool.contract.identity.name.startswith("_")


def _by_hand(target: str) -> None:
    if target == RESTORED:
        raise NotFound(NOT_BY_HAND)


def _configured(config: Source) -> Config:
    if isinstance(config, str | os.PathLike):
        return configuration.load(config)
    return config if isinstance(config, Config) else configuration.parse(config)
