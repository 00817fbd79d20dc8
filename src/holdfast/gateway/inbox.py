"""Which questions wait for a person, in which order, and what is asked of a yes before it counts?

`gateway.inbox`. Who may answer is decided where it always is (`gateway.decide`). What is added here is that
somebody who looks at a page answers what they were shown: nothing is decided about a question that is not the
one they read, a yes for good is said on purpose, and of many small ones a few were opened.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from holdfast.approvals import answers, triage
from holdfast.gateway.pulse import Pulse
from holdfast.gateway.sealing import seal, unseal
from holdfast.model.approval import Answer, Approval, escalation_shares, stand_ins
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError, NotFound
from holdfast.ports import Ports

BACK_S = 30 * 86_400.0
"""How far back a question's history looks."""
MOST_AT_ONCE = 100
MOST_READ = 40
"""Opened questions that are remembered; the cookie they are in has its limit."""
READ_S = 8 * 3600.0
MOST_COUNTED = 256
"""People whose count is remembered, each as of one moment."""
_READ = "questions read"

Decide = Callable[[Principal, str, bool, str], Awaitable[Approval]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One question, as it stands for the person who looks."""

    asked: Approval
    why_not: str
    """Why this person may not answer it; empty where they may."""
    seen: str
    """What their answer must name."""
    final: bool
    """A yes is for good, and says so."""
    alone: str | None
    """Why it is not approved in bulk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Who could still say yes in one role."""

    role: str
    count: int
    people: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """One group of the escalation."""

    roles: tuple[str, ...]
    at: float
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One question with what is around it."""

    waiting: Waiting
    awaited: tuple[Awaited, ...]
    chain: tuple[Reach, ...]
    past: Mapping[Answer, int]
    """How earlier questions of this caller about this tool were answered."""
    newer: Approval | None
    """The question that took its place."""
    changed: tuple[str, ...]
    """What is different about that one."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing was decided, and why."""

    text: str
    then: str


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one of several answers."""

    id: str
    asked: Approval | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Several:
    """What came of many answers at once; with `unread`, nothing, until those were opened."""

    results: tuple[Result, ...] = ()
    unread: tuple[Approval, ...] = ()


class Inbox:
    def __init__(self, ports: Ports, decide: Decide, ending: Callable[[], bool]) -> None:
        self._ports = ports
        self._decide = decide
        self.pulse = Pulse(ports.approvals, ports.clock, ending)
        self._counted: dict[tuple[object, ...], int] = {}

    # --- looking --------------------------------------------------------------------------

    async def list(self, by: Principal) -> Sequence[Waiting]:
        """Open questions that `by` may answer or asked; the most urgent first."""
        found = [self.standing(by, asked) for asked in await answers.listed(by, self._ports)]
        return sorted(found, key=lambda one: triage.urgency(one.asked, not one.why_not))

    async def waiting(self, by: Principal) -> int:
        """How many questions wait for `by`; counted anew when one of them has moved."""
        name = (by.tenant, by.id, by.roles, by.bounds, await self._ports.approvals.mark(by.tenant))
        found = self._counted.get(name)
        if found is None:
            if len(self._counted) >= MOST_COUNTED:
                self._counted.clear()
            found = self._counted[name] = sum(not one.why_not for one in await self.list(by))
        return found

    def standing(self, by: Principal, asked: Approval) -> Waiting:
        """A question as it stands for `by`."""
        return Waiting(
            asked=asked,
            why_not=self._why_not(by, asked),
            seen=triage.seen(asked),
            final=triage.is_final(asked),
            alone=triage.alone(asked),
        )

    def changes(self, by: Principal) -> AsyncGenerator[None, None]:
        return self.pulse.beats(by.tenant)

    async def look(self, by: Principal, approval_id: str) -> Looked:
        """One question, open or answered; raises NotFound when there is none that `by` may see."""
        asked = await answers.looked_up(by, approval_id, self._ports)
        if asked is None:
            raise NotFound(f"no approval {approval_id[:64]!r} is yours to see")
        newer = await self._newer(by, asked)
        since = self._ports.clock.now() - BACK_S
        ref = asked.ref
        return Looked(
            waiting=self.standing(by, asked),
            awaited=self._awaited(by, asked),
            chain=self._chain(asked),
            past=_others(
                await self._ports.approvals.tally(ref.tenant, ref.principal, ref.tool, since), asked
            ),
            newer=newer,
            changed=() if newer is None else triage.changed(asked, newer),
        )

    # --- answering ------------------------------------------------------------------------

    async def decide(
        self, by: Principal, approval_id: str, approve: bool, note: str, *, seen: str, aware: bool = False
    ) -> Approval | Stopped:
        """Answer the question that was read: `seen` names it. A yes for good is given `aware` of that."""
        asked = await answers.looked_up(by, approval_id, self._ports)
        if asked is None or asked.role_of(by, self._ports.chain) is None:
            return await self._refused(by, approval_id, approve, note)
        newer = await self._newer(by, asked)
        if newer is not None:
            what = ", ".join(triage.changed(asked, newer)) or "when it was asked"
            return Stopped(
                f"nothing was decided: this question was asked anew, with another answer to: {what}",
                f"read the new one: {newer.id}",
            )
        if seen != triage.seen(asked):
            return Stopped("nothing was decided: this is not the question you were shown", "read it again")
        if approve and not aware and triage.is_final(asked):
            return Stopped(
                "nothing was decided: this cannot be undone, and you have not said that you read so",
                "tick the box beside your answer",
            )
        return await self._decide(by, approval_id, approve, note)

    async def several(
        self,
        by: Principal,
        picked: Sequence[tuple[str, str]],
        approve: bool,
        note: str,
        read: Collection[str] = (),
    ) -> Several:
        """Answer many, each by its id and what was seen of it; `read` is what was opened before.

        Of what can be approved together one in five must have been opened, drawn by lot.
        """
        wanted = dict(picked)
        if len(wanted) > MOST_AT_ONCE:
            raise HoldfastError(
                f"{len(wanted)} questions at once are too many; select {MOST_AT_ONCE} at most"
            )
        if approve and (unread := await self._unread(by, wanted, read)):
            return Several(unread=tuple(unread))
        return Several(tuple([await self._one(by, i, s, approve, note) for i, s in wanted.items()]))

    # --- what was opened ------------------------------------------------------------------

    def remember(self, by: Principal, session: str, earlier: str, seen: str) -> str:
        """A sealed note of what this session has opened, with one more."""
        opened = [one for one in self.read(by, session, earlier) if one != seen]
        said = {"session": _name(session), "opened": [*opened, seen][-MOST_READ:]}
        return seal(self._ports.secrets, self._ports.clock, by, _READ, said, READ_S)

    def read(self, by: Principal, session: str, note: str) -> Sequence[str]:
        """What a note says was opened; nothing where it is not of this person and session."""
        said = unseal(self._ports.secrets, self._ports.clock, by, _READ, note) if note else None
        if said is None or said.get("session") != _name(session):
            return ()
        opened: Sequence[str] = said["opened"]
        return opened

    # --- parts ----------------------------------------------------------------------------

    async def _unread(
        self, by: Principal, wanted: Mapping[str, str], read: Collection[str]
    ) -> Sequence[Approval]:
        found = [one for one in await self.list(by) if one.asked.id in wanted]
        fit = [
            one.asked
            for one in found
            if not one.why_not and one.alone is None and one.seen == wanted[one.asked.id]
        ]
        drawn = triage.sample(fit, by.user, self._ports.secrets)
        return [asked for asked in drawn if triage.seen(asked) not in read]

    async def _one(self, by: Principal, approval_id: str, seen: str, approve: bool, note: str) -> Result:
        asked = await answers.looked_up(by, approval_id, self._ports)
        if approve and asked is not None and (why := triage.alone(asked)):
            return Result(approval_id, None, f"not approved in bulk: {why}; open it and decide there")
        try:
            said: Any = await self.decide(by, approval_id, approve, note, seen=seen)
        except HoldfastError as error:
            return Result(approval_id, None, str(error))
        if isinstance(said, Stopped):
            return Result(approval_id, None, f"{said.text}; {said.then}")
        return Result(approval_id, said)

    async def _refused(self, by: Principal, approval_id: str, approve: bool, note: str) -> Approval:
        """Whoever may not see a question, or has no role for it, is refused, and that is on record."""
        found = await self._ports.approvals.get(by.tenant, approval_id)
        if found is not None and found.role_of(by, self._ports.chain) is not None:
            raise NotFound(f"no approval {approval_id[:64]!r} is yours to see")
        return await self._decide(by, approval_id, approve, note)

    async def _newer(self, by: Principal, asked: Approval) -> Approval | None:
        if asked.answer is not Answer.AUTO_DENIED:
            return None
        latest = await self._ports.approvals.find(asked.ref)
        if latest is None or latest.id == asked.id:
            return None
        return answers.view(latest, by, self._ports.chain)

    def _why_not(self, by: Principal, asked: Approval) -> str:
        if asked.answer is not Answer.PENDING:
            return "it is answered"
        if asked.expires_at <= self._ports.clock.now():
            return "its time is over"
        if any(vote.person == by.user for vote in asked.votes):
            return "you have answered; somebody else must say yes too"
        if asked.role_of(by, self._ports.chain) is not None:
            return ""
        if asked.requester == by.user and "user" in asked.missing:
            return (
                "it needs your own consent, given where no agent can stand in for you: sign in with your"
                f" approver secret, or run 'holdfast approve {asked.id}' at your terminal"
            )
        if asked.requester == by.user:
            return "it is asked in your name, and nobody approves their own call"
        held = ", ".join(sorted(by.roles)) or "none"
        return f"it needs the role {' or '.join(sorted(asked.missing))}; you hold: {held}"

    def _awaited(self, by: Principal, asked: Approval) -> tuple[Awaited, ...]:
        """By name for those who may answer too; whoever asked learns the roles."""
        if asked.answer is not Answer.PENDING:
            return ()
        return tuple(
            Awaited(role=role, count=count, people=self._people(by, asked, role))
            for role, count in asked.missing.items()
        )

    def _people(self, by: Principal, asked: Approval, role: str) -> tuple[str, ...]:
        if role == "user":
            return (asked.requester,)
        if asked.requester == by.user or not by.roles:
            return ()
        roles = (role, *stand_ins(role, self._ports.chain, asked.level))
        tenant = asked.ref.tenant
        able = {name for one in roles for name in self._ports.people.holders(tenant, one)}
        return tuple(sorted(able - {asked.requester} - {vote.person for vote in asked.votes}))

    def _chain(self, asked: Approval) -> tuple[Reach, ...]:
        """Who is asked when; empty where silence widens nothing for this question."""
        chain = self._ports.chain
        if len(chain) < 2 or not any(role in group for group in chain for role in asked.need):
            return ()
        (first, step), life = escalation_shares(len(chain)), asked.expires_at - asked.created_at
        shares = [0.0, *(first + place * step for place in range(len(chain) - 1))]
        return tuple(
            Reach(roles=group, at=asked.created_at + life * share, reached=asked.level >= place)
            for place, (group, share) in enumerate(zip(chain, shares, strict=True))
        )


def _others(past: Mapping[Answer, int], asked: Approval) -> Mapping[Answer, int]:
    """Without the question itself."""
    return {answer: count - (answer is asked.answer) for answer, count in past.items()}


def _name(session: str) -> str:
    return sha256(session.encode()).hexdigest()[:16]
