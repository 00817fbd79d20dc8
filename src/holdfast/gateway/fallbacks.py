"""How does a call of one tool become an answer of another? EXE-4.

Every level is an ordinary call through every gate, under the same key and within the same deadline. For a
write the store keeps which tool answers for a key. It lets another one answer only while the ledger says that
nothing was done, and lets no other one be claimed: however many duplicates there are, whatever crashes and
whichever tool comes back, one level has an effect.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from holdfast.gateway.descent import Descent, falls, opened
from holdfast.gateway.ladder import Ladder
from holdfast.lifecycle import receive
from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Call, Principal, Proposal
from holdfast.model.errors import Code, StoreError
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import OperationRef
from holdfast.model.visible import visible
from holdfast.model.vocabulary import KeySource, State, ToolStatus
from holdfast.ports import Capabilities, Ports

log = logging.getLogger(__name__)

Carry = Callable[[Call], Awaitable[Observation]]
"""Takes a call through its life."""
Rests = Callable[[str], bool]
"""Whether a tool's breaker is open."""
Usual = Callable[[str, str], float | None]
"""How many milliseconds a tool usually takes in a tenant, as far as its health tells."""

TURNS = 4
"""How often a call may visit each level: others may move it back and forth, but not for ever."""
_THEN = {"person": "a person", "stale": "what was known last"}
_GONE = frozenset({ToolStatus.REVOKED, ToolStatus.SUNSET})


class Fallbacks:
    """Hung on the gateway as `fallbacks`."""

    def __init__(
        self, ladders: Mapping[str, Ladder], kept: Capabilities, ports: Ports, rests: Rests, usual: Usual
    ) -> None:
        self.ladders = ladders
        """By the tool whose calls fall back."""
        self._kept = kept
        self._ports = ports
        self._rests = rests
        self._usual = usual

    def explained(self, by: Principal, tool: str) -> list[str]:
        """What becomes of a call of `tool` that it cannot answer, in words; of tools that `by` may use."""
        ladder = next((one for one in self.ladders.values() if one.number(tool) is not None), None)
        if ladder is None:
            return []
        seen = [level.tool for level in ladder.levels if self._may_use(by, level.tool)]
        said = f"level {ladder.number(tool)} of {ladder.capability!r}: {' > '.join(seen)}"
        return [f"{said} > {_THEN[ladder.then]}" if ladder.then in _THEN else said]

    def _may_use(self, by: Principal, tool: str) -> bool:
        listing = self._ports.catalog.find(tool, None)
        return listing is not None and visible(by, listing.tool.contract)

    async def answer(self, ladder: Ladder, call: Call, carry: Carry) -> Observation:
        """Take a call of the first tool to whichever answers."""
        way = opened(ladder, call, self._ports)
        if way is None:  # a preview, or nobody may know of the tool: as if there were no other
            return await carry(call)
        seen = None
        try:
            seen = await self._descend(way, carry)
        except StoreError as error:  # who answers for the key cannot be found out: nobody else does now
            log.error("call %s: it cannot fall back: %s", call.id, error)
            seen = await self._ask(way, carry) if way.seen is None else way.told(way.seen)
        finally:
            way.leave(self._ports.attendance, seen)
        self._ports.telemetry.answered_at(way.asked.principal.tenant, ladder.capability, way.number)
        return self._shown(way, seen)

    def _shown(self, way: Descent, seen: Observation) -> Observation:
        """Whose operation it is, and what was tried, without tools of which its caller may not know."""
        if way.requested and way.key != way.asked.request_key and seen.key_source is KeySource.REQUEST:
            seen = replace(seen, key_source=KeySource.ADOPTED)
        said = seen.fallback
        if said is None or not seen.replayed:
            return seen
        tried = [one for one in said["tried"] if self._may_use(way.asked.principal, one["tool"])]
        return seen if tried == said["tried"] else replace(seen, fallback=said | {"tried": tried})

    async def _descend(self, way: Descent, carry: Carry) -> Observation:
        question = await self._begin(way)
        if question is not None and question.answer is not Answer.APPROVED:
            return way.told(await self._ask(way, carry))  # a person has the word, and nobody else
        forced, seen = question is not None or await self._comes_back(way), None
        for _ in range(TURNS * len(way.ladder.levels)):
            why = None if forced else self._why_not(way, way.number)
            follower = None if why is None else self._next(way)
            if why is None or follower is None:
                seen = await self._ask(way, carry)
                if await self._is_elsewhere(way, seen):
                    forced = False
                    continue
                if not falls(way.call, seen):
                    return await self._ended(way, seen)
                way.failed(seen)
                follower = self._next(way)
                if follower is None:
                    return await self._exhausted(way, seen, carry)
            else:
                way.passed_over(way.number, why)
            forced = not await self._move(way, follower)
            if forced and seen is not None:
                return way.told(seen)  # there is an effect, or there may be one
        return way.told(seen or await self._ask(way, carry))

    # --- where to begin, and where to go on -----------------------------------------------

    async def _begin(self, way: Descent) -> Approval | None:
        """At the level in force, or at the first where nothing was done there; where it waits for a person
        because no tool answered, the question.
        """
        if not way.writes:
            return None
        tool = await self._kept.tool(way.place)
        way.number = self._number(way, tool) or 0
        if tool is None or (way.ladder.then != "person" and not way.number):
            return None
        found = await self._ports.ledger.find(way.ref)
        if found is not None and found.state is State.NO_EFFECT:
            way.number = 0
        if found is None or found.state is not State.HELD:
            return None
        asked = await self._ports.approvals.find(way.ref)
        return asked if asked is not None and "escalation" in asked.packet else None

    def _number(self, way: Descent, tool: str | None) -> int | None:
        """At which level a tool is, where the caller may know of it."""
        number = None if tool is None else way.ladder.number(tool)
        return None if number is None or not self._may_use(way.asked.principal, tool or "") else number

    async def _comes_back(self, way: Descent) -> bool:
        """Whether a client without a key may mean what one of the tools did for it before (IDM-1).

        Then it goes on under that key, with that tool and whatever stands against asking it: who cannot be
        asked any more, and may have acted, must not be stood in for under another key.
        """
        if not (way.requested and way.writes):
            return False
        for number, level in enumerate(way.ladder.levels):
            listing = self._ports.catalog.find(level.tool, None)
            like = None if listing is None else way.like(number, listing.tool)
            if like is None or self._number(way, level.tool) is None:
                continue
            found = await self._ports.ledger.alike(like, self._ports.attendance)
            if found is None or found.state is State.NO_EFFECT:
                continue
            if await self._ports.ledger.attend(found):
                way.key, way.number = found.ref.key, number
                return True
        return False

    async def _move(self, way: Descent, to: int) -> bool:
        """Go on at another level; False where the ledger does not say that nothing was done at this one."""
        if not way.writes:
            way.number = to
            return True
        before = way.level.tool
        now = await self._kept.move(way.place, before, way.ladder.levels[to].tool, way.ladder.tools)
        found = self._number(way, now)
        if found is None or now == before:
            return False
        way.number = found
        return True

    async def _is_elsewhere(self, way: Descent, seen: Observation) -> bool:
        """Whether another tool answers for the key by now; then it is gone on there."""
        if not way.writes or seen.status is not Status.REFUSED or seen.code is not Code.KEY_MISMATCH:
            return False
        if way.call.key_source is KeySource.ADOPTED and way.call.key is not None:
            if not await self._takes_over(way, way.call):
                return True
            way.key = way.call.key
        mine = way.level.tool
        answers = await self._kept.tool(way.place)
        if answers is None:
            answers = await self._kept.move(way.place, mine, mine, way.ladder.tools)
        found = self._number(way, answers)
        if found is None or found == way.number:
            return False
        way.number = found
        return True

    async def _takes_over(self, way: Descent, call: Call) -> bool:
        """A client without a key took over an operation that fell back. It is to have what came of that,
        unless somebody else has it or still waits for it: then it means another operation (IDM-1).
        """
        key, who = call.key or "", call.principal
        tool = await self._kept.tool(way.place._replace(key=key))
        found = await self._ports.ledger.find(OperationRef(who.tenant, who.id, tool or "", key))
        free = found is not None and found.attendant is not None
        if found is not None and free and not self._ports.attendance.serves(who.tenant, found.call_id):
            return True
        await self._ports.ledger.leave(call, told=True, asked=True)
        return False

    # --- one level ------------------------------------------------------------------------

    async def _ask(self, way: Descent, carry: Carry, **how: bool) -> Observation:
        proposal = way.proposal(self._ports.clock.monotonic(), **how)
        way.seen = await carry(way.enter(self._received(way, proposal)))
        return way.seen

    def _received(self, way: Descent, proposal: Proposal) -> Call:
        if way.call is not way.opening or way.calls:
            return receive(proposal, self._ports)
        way.opening.proposal = proposal  # the first call is the one that came in
        return way.opening

    def _next(self, way: Descent) -> int | None:
        """The next level that could answer."""
        for number in range(way.number + 1, len(way.ladder.levels)):
            why = self._why_not(way, number)
            if why is None:
                return number
            way.passed_over(number, why)
        return None

    def _why_not(self, way: Descent, number: int) -> str | None:
        """Why a level is not even tried; `""` where nobody is to know of it.

        What is wrong with a call is told by the first, whatever else is wrong.
        """
        why = self._obstacle(way, number)
        return None if why is not None and number == 0 and not way.is_sound() else why

    def _obstacle(self, way: Descent, number: int) -> str | None:
        level = way.ladder.levels[number]
        listing = self._ports.catalog.find(level.tool, None)
        if listing is None or not visible(way.asked.principal, listing.tool.contract):
            return "" if number else None
        if listing.tool.writes != way.writes:
            return (
                "it writes, and the first reads" if listing.tool.writes else "it reads, and the first writes"
            )
        if listing.status in _GONE:
            return f"it is {listing.status.value}"
        if self._rests(level.tool):
            return "it failed too often and is given a rest"
        left_ms = way.left(self._ports.clock.monotonic()) * 1000
        if left_ms <= 0:
            return "no time is left"
        usual = self._usual(way.asked.principal.tenant, level.tool)
        if usual is not None and usual > left_ms:
            return f"it usually takes {usual:.0f} ms, and {left_ms:.0f} ms are left"
        return way.unfit(number)

    # --- the end --------------------------------------------------------------------------

    async def _ended(self, way: Descent, seen: Observation) -> Observation:
        """The answer of a level; where that did nothing, the next call begins with the first again."""
        if seen.status in (Status.REFUSED, Status.FAILED):
            await self._back(way)
        return way.told(seen)

    async def _back(self, way: Descent) -> bool:
        """To the first level; False where the ledger does not let go."""
        if way.writes and way.number:
            answers = await self._kept.move(way.place, way.level.tool, way.ladder.first)
            return answers == way.ladder.first
        return True

    async def _exhausted(self, way: Descent, seen: Observation, carry: Carry) -> Observation:
        """No tool answered."""
        last, free = way.told(seen), await self._back(way)
        if way.ladder.then == "stale" and not way.writes:
            way.number = 0
            known = await self._ask(way, carry, stale=True)
            way.number = len(way.ladder.levels)
            return known if known.status is Status.DONE else last
        if way.ladder.then == "person" and way.writes and free:
            return await self._escalated(way, last, carry)
        return last

    async def _escalated(self, way: Descent, last: Observation, carry: Carry) -> Observation:
        """Ask an operator, once for a key: who has approved is not asked again."""
        way.number = 0
        if await self._ports.approvals.find(way.ref) is not None:
            return last
        asked = await self._ask(way, carry, escalated=True)
        if asked.status is Status.HELD:
            way.number = len(way.ladder.levels)
            return asked
        if asked.status is not Status.REFUSED:  # somebody else has called it meanwhile
            return way.told(asked)
        return replace(last, warnings=(*last.warnings, f"nobody could be asked: {asked.message}"))
