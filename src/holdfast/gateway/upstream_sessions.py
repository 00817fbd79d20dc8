"""Which sessions do upstreams keep open for callers, and how does each end? EXE-8."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.approvals.release import principal_of
from holdfast.gateway.operators import need_operator, operates
from holdfast.gateway.session_follow import follows
from holdfast.model import defaults
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Principal, Proposal
from holdfast.model.errors import HoldfastError, NotFound, StoreError
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import OperationRef
from holdfast.model.restored import RESTORED
from holdfast.model.upstream_session import SessionLine, SessionState, UpstreamSession
from holdfast.model.vocabulary import Environment, State
from holdfast.ports import Ports, UpstreamSessions, partner
from holdfast.settlement import settle_taken_back

log = logging.getLogger(__name__)

MOST = 500
"""Sessions that one round of housekeeping looks at."""
AGAIN_S = 5.0
"""Between two tries at rolling one back, at first."""
SLOWEST_S = 600.0
"""The same of one that is old by now."""
GROWS = 0.05
"""Of its age, which it is left alone for between two tries."""

Propose = Callable[[Proposal], Awaitable[Observation]]
Again = Callable[[Principal], Principal | None]


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A session and what was done in it, as somebody may see them."""

    session: UpstreamSession
    lines: tuple[SessionLine, ...]


@dataclass(frozen=True, slots=True)
class Undone:
    """A step that was to be taken back, and what came of that."""

    line: SessionLine
    seen: Observation


class UpstreamSessionDesk:
    """Hung on the gateway as `upstream_sessions`; to gates it is `SessionEnding`."""

    def __init__(self, sessions: UpstreamSessions, environment: Environment) -> None:
        self._sessions = sessions
        self._environment = environment
        self._parts: tuple[Ports, Propose, Again] | None = None
        self._told: set[str] = set()
        """Sessions whose rolling back failed, and the log says so."""

    def bind(self, ports: Ports, propose: Propose, again: Again) -> None:
        """Once the ports exist, since it is one of them."""
        self._parts = (ports, propose, again)

    # --- looking --------------------------------------------------------------------------

    async def list(self, by: Principal, limit: int = 50) -> Sequence[UpstreamSession]:
        """Everybody's for an operator, else one's own; newest first."""
        own = None if operates(by, self._ports.people) else by.id
        return await self._sessions.list(by.tenant, principal=own, limit=limit)

    async def look(self, by: Principal, session_id: str) -> ShownSession:
        session = await self._own(by, session_id)
        return ShownSession(session, tuple(await self._sessions.lines(by.tenant, session_id)))

    def findings(self) -> Iterator[str]:
        """What `doctor` should tell about tools that work in sessions."""
        listings = self._ports.catalog.list()
        for namespace, name, _ in self._named():
            for role in ("begin", "commit", "rollback"):
                if partner(listings, namespace, name, role) is None:
                    about = f"session {name!r} of {namespace!r}"
                    yield f"{about}: no tool has the role {role!r}, so none can be begun; declare one"
        yield from self.bound_to_a_process()

    def bound_to_a_process(self) -> Iterator[str]:
        """Which sessions only the worker can go on with that began them."""
        for namespace, name, upstream in self._named():
            if upstream in self._ports.in_process:
                about = f"session {name!r} of {namespace!r}: its upstream lives in the gateway's process"
                only = "so only the worker that began one can go on with it"
                yield f"{about}, {only}; 'serve' with one worker, or reach it by 'url'"

    def _named(self) -> Sequence[tuple[str, str, str]]:
        """Namespace, name and upstream of all kinds of sessions there are."""
        return sorted(
            {
                (one.tool.contract.identity.namespace, part.name, one.upstream)
                for one in self._ports.catalog.list()
                if (part := one.tool.session) is not None
            }
        )

    # --- ending ---------------------------------------------------------------------------

    async def roll_back(self, tenant: str, session_id: str, why: str) -> bool:
        session = await self._sessions.get(tenant, session_id)
        if session is not None and session.state is SessionState.OPEN:
            if not await self._sessions.move(session, SessionState.ROLLING_BACK, why, "holdfast"):
                return False
            session = await self._sessions.get(tenant, session_id)
        return session is not None and await self._rolled_back(session)

    async def end(self, by: Principal, session_id: str) -> UpstreamSession:
        """Roll it back for whoever began it; the session as it is then."""
        session = await self._own(by, session_id)
        if session.state not in (SessionState.OPEN, SessionState.ROLLING_BACK, SessionState.ROLLED_BACK):
            raise HoldfastError(f"session {session_id!r} is {session.state}; there is nothing to roll back")
        await self.roll_back(by.tenant, session_id, f"wanted by '{by.user}'")
        return await self._own(by, session_id)

    async def settle(self, by: Principal, session_id: str, state: SessionState, note: str) -> UpstreamSession:
        """An operator says how a session ended of which nobody knows that."""
        need_operator(by, self._ports.people)
        session = await self._own(by, session_id)
        if session.state not in (SessionState.UNKNOWN, SessionState.ROLLING_BACK):
            raise HoldfastError(f"session {session_id!r} is {session.state}; only an unknown end is settled")
        why = f"settled by '{by.user}': {note}" if note else f"settled by '{by.user}'"
        if not await self._sessions.move(session, state, why, by.user):
            raise HoldfastError(f"session {session_id!r} changed in the meantime; look at it again")
        return await self._own(by, session_id)

    async def undo(
        self, by: Principal, session_id: str, *, partial: bool = False
    ) -> tuple[UpstreamSession, Sequence[Undone]]:
        """Take back what was committed, from the last step to the first; stops where one cannot be.

        Each is a governed call under a key of its own: whoever asks again goes on where this stopped.
        """
        session = await self._own(by, session_id)
        lines = await self._sessions.lines(by.tenant, session_id)
        _may_be_undone(session, lines, partial)
        principal = self._whose(session, by)
        done: list[Undone] = []
        for line in reversed(lines):
            if line.compensation is not None and not await self._is_taken_back(session, line, principal):
                done.append(Undone(line, await self._compensated(session, line, principal)))
                if done[-1].seen.status is not Status.DONE:
                    return session, done
        await self._sessions.move(session, SessionState.UNDONE, f"taken back by '{by.user}'", by.user)
        return await self._own(by, session_id), done

    async def _compensated(
        self, session: UpstreamSession, line: SessionLine, principal: Principal
    ) -> Observation:
        undo, key = line.compensation or {}, _undo_key(session, line)
        before = await self._ports.ledger.find_call(session.tenant, line.call_id)
        seen = await self._call(
            session, undo["tool"], undo["arguments"], principal, key, f"undo {line.number}"
        )
        if seen.status is Status.DONE and before is not None:
            await settle_taken_back(before, seen.call_id, "session", self._ports.ledger)
        return seen

    async def _is_taken_back(self, session: UpstreamSession, line: SessionLine, principal: Principal) -> bool:
        """Not by us, which is told again: by the saga of which the session was a part."""
        ledger, undo = self._ports.ledger, line.compensation or {}
        done = await ledger.find_call(session.tenant, line.call_id)
        if done is None or done.state is not State.COMPENSATED:
            return False
        own = OperationRef(session.tenant, principal.id, undo["tool"], _undo_key(session, line))
        return await ledger.find(own) is None

    # --- housekeeping ---------------------------------------------------------------------

    async def tend(self) -> None:
        """Roll back what was left alone, and follow what became of commits that got lost."""
        going_on = await self._sessions.going_on(MOST)
        if going_on and RESTORED in await self._ports.controls.halts():
            return  # the store that was lost may know how they ended
        for session in going_on:
            try:
                await self._tended(session)
            except StoreError:
                raise
            except HoldfastError as error:
                log.warning("session %s: %s", session.id, error)

    async def _tended(self, session: UpstreamSession) -> None:
        to = await follows(session, self._ports)
        if to is not None and to[0] is not session.state:
            if await self._sessions.move(session, *to, "holdfast"):
                moved = await self._sessions.get(session.tenant, session.id)
                if moved is not None and moved.state is SessionState.ROLLING_BACK:
                    await self._rolled_back(moved)
        elif self._is_due(session) and await self._sessions.trying(session, session.why):
            await self.roll_back(session.tenant, session.id, session.why)

    def _is_due(self, session: UpstreamSession) -> bool:
        if session.state is not SessionState.ROLLING_BACK or session.home == "elsewhere":
            return False
        now = self._ports.clock.now()
        pause = min(max(AGAIN_S, GROWS * (now - session.created_at)), SLOWEST_S)
        return session.home == "gone" or now - session.touched_at >= pause

    async def forget(self) -> None:
        await self._sessions.forget(self._ports.clock.now() - defaults.SESSION_KEPT_S)

    async def close(self, patience_s: float) -> None:
        """What lives in this process ends with it: say so while its upstreams still listen."""
        if self._parts is None:
            return
        try:
            worked_in = any(listing.tool.session for listing in self._ports.catalog.list())
            going_on = await self._sessions.going_on(MOST) if worked_in else ()
        except Exception as error:  # a gateway closes, whatever is broken in it
            log.warning(
                "sessions that end with this process could not be rolled back: %s", type(error).__name__
            )
            return
        ours = [one for one in going_on if one.home == "here" and one.state is SessionState.OPEN]
        ending = [asyncio.create_task(self._last(session)) for session in ours]
        if ending:
            await asyncio.wait(ending, timeout=patience_s)
        for task in ending:
            task.cancel()

    async def _last(self, session: UpstreamSession) -> None:
        try:
            await self.roll_back(session.tenant, session.id, "its process ends")
        except HoldfastError as error:
            log.warning("session %s ends with this process, and was not rolled back: %s", session.id, error)

    # --- parts ----------------------------------------------------------------------------

    @property
    def _ports(self) -> Ports:
        return self._bound()[0]

    def _bound(self) -> tuple[Ports, Propose, Again]:
        if self._parts is None:
            raise HoldfastError("the gateway is not open yet")
        return self._parts

    async def _rolled_back(self, session: UpstreamSession) -> bool:
        """One try; whoever finds it ROLLING_BACK later makes the next."""
        if session.state is not SessionState.ROLLING_BACK:
            return session.state is SessionState.ROLLED_BACK
        if session.home == "gone":
            why = "the process that its upstream lived in is gone, and the session with it"
            return await self._sessions.move(session, SessionState.ROLLED_BACK, why, "holdfast")
        if session.home == "elsewhere":
            return False
        problem = await self._asked_to(session)
        now = await self._sessions.get(session.tenant, session.id)
        if now is None or now.state is SessionState.ROLLED_BACK:
            self._told.discard(session.id)
            return now is not None
        if session.id not in self._told:  # said once, however often it is tried
            log.warning("session %s could not be rolled back; it is tried again: %s", session.id, problem)
            self._told.add(session.id)
        return False

    async def _asked_to(self, session: UpstreamSession) -> str:
        """Call the tool that rolls it back, in the name of whoever began it; what was said."""
        tool = partner(self._ports.catalog.list(), session.namespace, session.name, "rollback")
        said = None if tool is None else tool.transactional.session
        if tool is None or said is None:
            return f"no tool of '{session.namespace}' has the role 'rollback' in session '{session.name}'"
        try:
            principal = self._for_whom(session)
        except HoldfastError as error:
            return str(error)
        arguments, key = {said.handle: session.id}, f"{session.id}:rollback"
        seen = await self._call(session, tool.tool, arguments, principal, key, "rollback")
        return f"{seen.status}: {seen.message}"

    async def _call(
        self,
        session: UpstreamSession,
        tool: str,
        arguments: Mapping[str, Any],
        principal: Principal,
        key: str,
        step: str,
    ) -> Observation:
        _, propose, _ = self._bound()
        begun = await self._ports.ledger.find_call(session.tenant, session.call_id)
        return await propose(
            Proposal(
                tool=tool,
                arguments=arguments,
                principal=principal,
                key=key,
                task=session.id,
                step=step,
                environment=self._environment,
                release="gateway",
                trace_id=None if begun is None else begun.trace_id,
                after=(session.call_id,),
            )
        )

    def _whose(self, session: UpstreamSession, by: Principal | None) -> Principal:
        """Whoever began it, with the rights they have now."""
        if by is not None and by.id == session.principal:
            return by
        _, _, again = self._bound()
        found = again(self._kept(session))
        if found is None:
            raise HoldfastError(f"'{session.principal}' began session '{session.id}' and may no longer call")
        return found

    def _for_whom(self, session: UpstreamSession) -> Principal:
        """The same to roll it back; of those who may no longer call that is done as they were.

        It takes nothing from anybody but what they have begun themselves, and nobody else could end it.
        """
        kept = self._kept(session)
        return self._bound()[2](kept) or replace(kept, rests_on=(), bounds=UNBOUND)

    def _kept(self, session: UpstreamSession) -> Principal:
        if not session.wanted_by:
            raise HoldfastError(f"who began session '{session.id}' was erased")
        return principal_of(session.tenant, session.wanted_by)

    def _theirs(self, by: Principal, session: UpstreamSession) -> bool:
        return session.principal == by.id or operates(by, self._ports.people)

    async def _own(self, by: Principal, session_id: str) -> UpstreamSession:
        session = await self._sessions.get(by.tenant, session_id)
        if session is None or not self._theirs(by, session):
            text = f"there is no session {session_id!r} of yours"
            raise NotFound(f"{text}; 'holdfast sessions list' lists them")
        return session


def _may_be_undone(session: UpstreamSession, lines: Sequence[SessionLine], partial: bool) -> None:
    if session.state is not SessionState.COMMITTED:
        raise HoldfastError(f"session {session.id!r} is {session.state}; only what was committed is undone")
    lasting = [f"{line.tool} (call {line.call_id})" for line in lines if line.compensation is None]
    if lasting and not partial:
        raise HoldfastError(
            f"session {session.id!r} cannot be taken back as a whole, for these have no compensation: "
            f"{', '.join(lasting)}; take back the others with --partial"
        )


def _undo_key(session: UpstreamSession, line: SessionLine) -> str:
    return f"{session.id}:undo:{line.number}"
