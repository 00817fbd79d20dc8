"""Does the story of a call tell what every gate said, who answered, what became of it, and what proves it?"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from holdfast import Code, Effect, Gateway, Observation, Principal, Status, lifecycle, tool
from holdfast.gateway.passages import Told, passages
from holdfast.gateway.timeline import Said, Story
from holdfast.identity.delegation import Wish
from holdfast.model.approval import Approval
from holdfast.model.call import Call, Proposal
from holdfast.model.errors import Forbidden, NotFound
from holdfast.model.operation import OperationRef
from holdfast.model.record import Entry, Record
from holdfast.model.steps import ORDER
from holdfast.model.verdict import Refusal, Verdict
from holdfast.ports import Approvals, Ports
from holdfast.records.checkpoint import CheckpointFile, Notary
from holdfast.records.note import Signer
from tests.approvals.opening import House
from tests.delegation.shop import Shop, at_work, key
from tests.lifecycle.test_approvals import GRANTED, Bank
from tests.lifecycle.world import World
from tests.requirements import requirement
from tests.stored import rows

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"things:*"}), trust=60)
OLGA = Principal(user="olga", agent="cli", roles=frozenset({"operator"}))
BEN = Principal(user="ben", agent="cli", roles=frozenset({"operator"}))
PEOPLE: Mapping[str, Any] = {
    **GRANTED,
    "auth": {"people": {"ana": {}, "ben": {"roles": ["operator"]}, "olga": {"roles": ["operator"]}}},
    "approvals": {"chain": [["operator"], ["admin"]]},
}


def said(story: Story) -> dict[str, Said]:
    return {gate.name: gate.verdict for gate in story.gates}


def words(story: Story) -> list[str]:
    return [moment.what for moment in story.moments]


@requirement("PPL-2")
async def test_a_call_that_ran_passed_every_gate_and_says_how_long_each_took(house: House) -> None:
    async with house.gateway(World(), config=PEOPLE) as gateway:
        done = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA, task="spring")
        story = await gateway.timeline.of(OLGA, done.call_id)
    assert (story.status, story.code, story.decided_by) == ("done", "", None)
    assert [gate.name for gate in story.gates] == list(ORDER)
    assert set(list(said(story).values())[:10]) == {Said.PASSED}
    assert (said(story)["execute"], said(story)["verify"]) == (Said.RAN, Said.RAN)
    assert all(gate.micros is not None and gate.micros >= 0 and gate.question for gate in story.gates)
    assert (story.tool, story.version, story.caller, story.agent) == ("test.touch", "1.0.0", "ana", "bot")
    assert (story.task, story.attempts, story.observation) == ("spring", 1, done)
    assert story.outcome == done.outcome
    assert story.ledger is not None
    assert (story.ledger.state, story.ledger.key, story.ledger.settled) == ("committed", "k", ())
    assert story.ledger.claimed_at is not None
    assert [line.kind for line in story.records] == ["intent", "outcome"]
    assert any("starter.writes" in policy for policy in story.policies)


@requirement("PPL-2")
async def test_a_read_has_a_story_though_the_ledger_keeps_nothing_of_it(house: House) -> None:
    async with house.gateway(World(), config=PEOPLE) as gateway:
        seen = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
        assert await gateway.find(ANA, seen.call_id) is None
        story = await gateway.timeline.of(ANA, seen.call_id)
    assert (story.status, story.ledger, story.observation) == ("done", None, None)
    assert said(story)["execute"] is Said.RAN


@requirement("PPL-2", "LIF-3")
@pytest.mark.parametrize("place", range(10))
async def test_a_refusal_names_the_gate_that_decided_and_no_later_one_was_asked(
    house: House, place: int
) -> None:
    async def no(call: Call, ports: Ports) -> Verdict:
        return Refusal(Code.CONFLICT, "no")

    no.__name__ = ORDER[place]
    gates = (*lifecycle.GATES[:place], no, *lifecycle.GATES[place + 1 :])
    async with house.gateway(World(), config=PEOPLE) as gateway:
        refused = await lived(gateway, gates)
        story = await gateway.timeline.of(OLGA, refused.call_id)
    assert (story.status, story.code, story.decided_by) == ("refused", "CONFLICT", ORDER[place])
    told = said(story)
    assert [told[name] for name in ORDER[:place]] == [Said.PASSED] * place
    assert told[ORDER[place]] is Said.REFUSED
    assert {told[name] for name in ORDER[place + 1 :]} == {Said.UNASKED}
    assert words(story)[-1] == f"refused by gate '{ORDER[place]}': something changed while it was on its way"


async def lived(gateway: Gateway, gates: tuple[Any, ...], **more: Any) -> Observation:
    proposal = Proposal(tool="test.touch", arguments={"thing": "a"}, principal=ANA, key="k", **more)
    call = lifecycle.receive(proposal, gateway._ports)
    return await lifecycle.live(call, gateway._ports, gateway._runtime, gates)


@requirement("PPL-2", "DEC-5")
async def test_a_preview_shows_which_gates_it_was_not_asked(house: House) -> None:
    async with house.gateway(Bank(), config=PEOPLE) as gateway:
        seen = await gateway.call("test.pay", {"order": "o-1"}, preview=True, principal=ANA)
        story = await gateway.timeline.of(OLGA, seen.call_id)
    assert (story.status, story.decided_by, words(story)[-1]) == ("preview", None, "previewed; nothing ran")
    unasked = {name for name, verdict in said(story).items() if verdict is Said.UNASKED}
    assert unasked == {"replay", "limits", "approval", "claim", "execute", "verify"}
    assert all(gate.micros is not None for gate in story.gates if gate.name not in unasked)


@requirement("PPL-2", "APR-4")
async def test_a_held_call_says_who_is_waited_for_and_until_when(house: House) -> None:
    async with house.gateway(Bank(), config=PEOPLE) as gateway:
        held = await pay(gateway)
        waiting = await gateway.timeline.of(BEN, held.call_id)
        own = await gateway.timeline.of(ANA, held.call_id)
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        half = await gateway.timeline.of(BEN, held.call_id)
    assert (waiting.status, waiting.decided_by, said(waiting)["approval"]) == ("held", "approval", Said.HELD)
    assert waiting.why == "waiting for approval by 2 x operator"
    assert waiting.awaited is not None
    assert (dict(waiting.awaited.missing), waiting.awaited.people) == ({"operator": 2}, ("ben", "olga"))
    assert waiting.awaited.you
    assert waiting.approval is not None
    assert waiting.awaited.until == waiting.approval.expires_at
    assert own.awaited is not None
    assert (own.awaited.people, own.awaited.you) == ((), False)
    assert half.awaited is not None
    assert (dict(half.awaited.missing), half.awaited.people, half.awaited.you) == (
        {"operator": 1},
        ("olga",),
        False,
    )


async def pay(gateway: Gateway, key: str = "k") -> Observation:
    return await gateway.call("test.pay", {"order": "o-1"}, key=key, principal=ANA)


@requirement("PPL-2", "APR-4", "APR-3")
async def test_an_approved_call_tells_of_its_question_its_votes_and_both_ways_through_the_gates(
    house: House,
) -> None:
    async with house.gateway(Bank(), config=PEOPLE) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        await gateway.decide(OLGA, held.approval.id, True, "checked")
        ran = await pay(gateway)
        again = await pay(gateway)
        story = await gateway.timeline.of(OLGA, held.call_id)
    assert (ran.status, again.replayed) == (Status.DONE, True)
    assert [way.kind for way in story.passages] == ["hold", "outcome", "replay"]
    assert [way.decided_by for way in story.passages] == ["approval", None, "replay"]
    assert (story.status, story.decided_by, story.awaited) == ("done", None, None)
    assert story.rests_on == held.approval.id
    assert story.approval is not None
    assert [vote.person for vote in story.approval.votes] == ["ben", "olga"]
    told = words(story)
    for sentence in (
        "asked for 2 x operator",
        "held by gate 'approval': a person must say yes first",
        "approved by ben as operator",
        "approved by olga as operator",
        f"claimed: ana through bot may act from here on, by {held.approval.id}",
        "ended done, committed",
        "asked again with the same key: got the first answer, nothing ran",
    ):
        assert sentence in told, sentence
    assert [line.what for line in story.records] == [
        moment.what for moment in story.moments if moment.record is not None
    ]
    assert story.ledger is not None
    assert story.ledger.held_at is not None
    assert story.ledger.claimed_at is not None


class Meanwhile:
    """The approvals, before the first look at which something happens."""

    def __init__(self, approvals: Approvals, happens: Callable[[], Awaitable[None]]) -> None:
        self._approvals, self._happens = approvals, happens

    async def find(self, ref: OperationRef) -> Approval | None:
        await self._happens()
        return await self._approvals.find(ref)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._approvals, name)


@requirement("PPL-2")
async def test_a_call_that_goes_on_while_its_story_is_told_is_not_called_unknown(house: House) -> None:
    bank, running = Bank(), list[asyncio.Task[Observation]]()
    bank.open.clear()
    async with house.gateway(bank, config=PEOPLE) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        question = held.approval.id

        async def approved_and_begun() -> None:
            for person in (BEN, OLGA):
                await gateway.decide(person, question, True)
            running.append(asyncio.ensure_future(pay(gateway)))
            await bank.entered.wait()

        approvals = gateway.timeline._approvals
        gateway.timeline._approvals = cast(Approvals, Meanwhile(approvals, approved_and_begun))
        caught = await gateway.timeline.of(OLGA, held.call_id)
        gateway.timeline._approvals = approvals
        then = await gateway.timeline.of(OLGA, held.call_id)
        bank.open.set()
        await running[0]
    assert (caught.status, then.status) == ("held", "running")


@requirement("PPL-2", "APR-3")
async def test_a_question_that_nobody_answers_tells_of_its_escalation_and_its_end(house: House) -> None:
    async with house.gateway(Bank(), config=PEOPLE) as gateway:
        held = await pay(gateway)
        first = await gateway.timeline.of(OLGA, held.call_id)
        assert first.awaited is not None
        life = first.awaited.until - house.clock.now()
        await house.clock.advance(life * 0.9)
        later = await gateway.timeline.of(OLGA, held.call_id)
        await house.clock.advance(life)
        await gateway.tidy()
        over = await gateway.timeline.of(OLGA, held.call_id)
    assert first.awaited.also == ()
    assert later.awaited is not None
    assert later.awaited.also == ("admin",)
    assert "escalated to admin" in words(later)
    assert (over.status, over.awaited) == ("refused", None)
    assert "denied, because nobody answered in time" in words(over)
    assert [moment.at for moment in over.moments] == sorted(moment.at for moment in over.moments)


@requirement("PPL-2", "IDM-5")
async def test_an_unknown_outcome_is_told_as_such_and_so_is_who_settled_it(house: House) -> None:
    world = World(mood="raise")
    async with house.gateway(world, config=PEOPLE) as gateway:
        lost = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        before = await gateway.timeline.of(OLGA, lost.call_id)
        await gateway.settle(BEN, lost.call_id, "committed", "seen in the target")
        after = await gateway.timeline.of(OLGA, lost.call_id)
    assert (before.status, before.code) == ("unknown", "OUTCOME_UNKNOWN")
    assert before.ledger is not None
    assert before.ledger.state == "unknown"
    assert before.outcome is not None
    assert (after.status, after.code) == ("done", "")
    assert after.ledger is not None
    [settled] = after.ledger.settled
    assert (settled.by, settled.was, settled.became) == ("ben", "unknown", "committed")
    assert settled.note == "seen in the target"
    assert words(after)[-1] == "settled by ben: committed (seen in the target)"


@requirement("PPL-2")
async def test_a_call_that_is_running_says_so_and_that_it_passed_the_gates(house: House) -> None:
    world = World(mood="wait")
    async with house.gateway(world, config=PEOPLE) as gateway:
        work = asyncio.ensure_future(gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA))
        await world.entered.wait()
        [call] = list(gateway._under_way)
        story = await gateway.timeline.of(OLGA, call.id)
        world.release.set()
        await work
    assert (story.status, story.code, said(story)["execute"]) == ("running", "", Said.RUNNING)
    assert said(story)["claim"] is Said.PASSED
    assert story.ledger is not None
    assert (story.ledger.state, story.ledger.ended_at) == ("dispatched", None)


@requirement("PPL-2", "AUT-6")
async def test_nobody_sees_a_call_that_is_not_theirs(house: House) -> None:
    async with house.gateway(World(), config=PEOPLE) as gateway:
        done = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        read = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
        in_person = replace(ANA, agent="local")
        assert (await gateway.timeline.of(in_person, done.call_id)).observation == done
        for call_id in (done.call_id, read.call_id, "call_none", "", "policy:none"):
            for stranger in (
                replace(OLGA, tenant="south"),
                replace(ANA, tenant="south"),
                replace(ANA, user="eve"),
                replace(ANA, agent="other"),
                replace(in_person, user="eve"),
            ):
                with pytest.raises(NotFound):
                    await gateway.timeline.of(stranger, call_id)
        [record, *_] = (await gateway.timeline.of(OLGA, done.call_id)).records
        for stranger in (replace(OLGA, tenant="south"), replace(OLGA, tenant="*")):
            with pytest.raises(NotFound):
                await gateway.timeline.proven(stranger, record.id)


@requirement("PPL-2", "AUD-3")
async def test_who_may_not_read_the_log_gets_the_story_without_its_records(house: House) -> None:
    async with house.gateway(World(), config=PEOPLE) as gateway:
        done = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        own = await gateway.timeline.of(ANA, done.call_id)
        full = await gateway.timeline.of(OLGA, done.call_id)
        auditor = replace(ANA, scopes=frozenset({"holdfast:audit"}))
        assert (await gateway.timeline.of(auditor, done.call_id)).records == full.records
        with pytest.raises(Forbidden):
            await gateway.timeline.proven(ANA, full.records[0].id)
    assert (own.records, own.audited, own.policies) == ((), False, ())
    assert {moment.record for moment in own.moments} == {None}
    assert {way.record for way in own.passages} == {None}
    assert words(own) == words(full)
    assert own.gates == full.gates


@requirement("PPL-2", "VAL-2")
async def test_a_hidden_tool_looks_in_the_story_like_one_that_is_not_there(house: House) -> None:
    @tool(effect=Effect.READ_ONLY, scopes=["vault:read"])
    async def peek(thing: str) -> str:
        """Peek into the vault."""
        return thing

    async with house.gateway(peek, config=PEOPLE) as gateway:
        hidden = await gateway.call("test.peek", {"thing": "a"}, principal=ANA)
        missing = await gateway.call("test.none", {"thing": "a"}, principal=ANA)
        one, other = [await gateway.timeline.of(ANA, seen.call_id) for seen in (hidden, missing)]
        full = await gateway.timeline.of(OLGA, hidden.call_id)
    same: dict[str, Any] = {"call_id": "", "trace_id": "", "tool": "", "latency_ms": 0.0}
    assert replace(one, **same) == replace(other, **same)
    assert (one.code, one.decided_by) == ("TOOL_NOT_FOUND", "resolve")
    assert (full.code, full.decided_by) == ("PERMISSION_DENIED", "authorize")


@requirement("PPL-2", "APR-2")
async def test_an_alarm_is_told_to_those_who_may_read_the_log_and_to_nobody_else(house: House) -> None:
    async with house.gateway(Bank(), config=PEOPLE) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        with pytest.raises(Forbidden):
            await gateway.decide(replace(OLGA, user="ana"), held.approval.id, True)
        own = await gateway.timeline.of(ANA, held.call_id)
        full = await gateway.timeline.of(OLGA, held.call_id)
    assert full.alarms == ("tried to answer their own question",)
    assert "security: ana: tried to answer their own question" in words(full)
    assert own.alarms == ()
    assert not any("security" in sentence for sentence in words(own))


@requirement("PPL-2", "AUT-2")
async def test_a_delegated_call_says_by_which_delegation_and_who_it_was_delegated_by(house: House) -> None:
    async with at_work(house, Shop()) as gateway:
        subject = await gateway.delegation.subject(key("alice"))
        issued = await gateway.delegation.issue(subject.principal, subject, Wish(agent="bot"))
        caller = gateway.identity.authenticate({"Authorization": f"Bearer {issued.token}"})
        done = await gateway.call("test.order", {"order": "o-1"}, principal=caller)
        olga = gateway.identity.authenticate({"Authorization": f"Bearer {key('olga')}"})
        story = await gateway.timeline.of(olga, done.call_id)
        own = await gateway.timeline.of(caller, done.call_id)
    assert (story.caller, story.agent) == ("alice", "bot")
    assert story.delegation
    assert story.delegation == own.delegation


@requirement("PPL-2", "AUD-2")
async def test_a_record_is_proven_by_its_path_and_signed_once_a_checkpoint_is_over_it(
    house: House, tmp_path: Path
) -> None:
    signs = Notary(Signer.fresh(), CheckpointFile(tmp_path / "checkpoints"))
    async with house.gateway(World(), config=PEOPLE, notary=signs) as gateway:
        calls = [await gateway.call("test.look", {"thing": str(n)}, principal=ANA) for n in range(9)]
        [intent, outcome] = (await gateway.timeline.of(OLGA, calls[3].call_id)).records
        fresh = await gateway.timeline.proven(OLGA, outcome.id)
        await gateway._auditing.tidy(sign_now=True)
        signed = await gateway.timeline.proven(OLGA, outcome.id)
        other = await gateway.timeline.proven(OLGA, intent.id)
    assert (fresh.verified, fresh.signed, fresh.checkpoint) == (True, False, None)
    assert "no checkpoint is over it yet" in fresh.why
    assert (signed.verified, signed.signed, signed.size) == (True, True, 18)
    assert (signed.record, signed.call_id, signed.leaf) == (outcome.id, calls[3].call_id, outcome.leaf)
    assert len(signed.path) >= 4
    assert signed.root == other.root
    assert signed.path != other.path


@requirement("PPL-2", "AUD-2")
@pytest.mark.parametrize(
    "change", ["body = replace(body, 'done', 'gone')", "body = 'no more'", "hash = prev"]
)
async def test_a_record_that_was_changed_is_not_proven(tmp_path: Path, change: str) -> None:
    house = House("sqlite", tmp_path)
    signs = Notary(Signer.fresh(), CheckpointFile(tmp_path / "checkpoints"))
    async with house.gateway(World(), config=PEOPLE, notary=signs) as gateway:
        seen = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
        await gateway._auditing.tidy(sign_now=True)
        rows("sqlite", tmp_path, f"UPDATE record SET {change} WHERE kind = 'outcome'")
        story = await gateway.timeline.of(OLGA, seen.call_id)
        found = [await gateway.timeline.proven(OLGA, line.id) for line in story.records]
    assert [one.verified for one in found] == [True, False]
    assert not found[1].intact
    assert "is not what was written" in found[1].why


@requirement("PPL-2", "AUD-2")
async def test_a_checkpoint_that_somebody_else_signed_proves_nothing(house: House, tmp_path: Path) -> None:
    theirs = Notary(Signer.fresh(), CheckpointFile(tmp_path / "theirs"))
    ours = Notary(Signer.fresh(), CheckpointFile(tmp_path / "ours"))
    async with house.gateway(World(), config=PEOPLE, notary=theirs) as gateway:
        seen = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
        await gateway._auditing.tidy(sign_now=True)
        gateway._auditing._notary = ours
        [line, *_] = (await gateway.timeline.of(OLGA, seen.call_id)).records
        found = await gateway.timeline.proven(OLGA, line.id)
    assert (found.intact, found.included, found.signed, found.verified) == (True, True, False, False)
    assert "signature" in found.why


def written(kind: str, **said: Any) -> Told:
    body = orjson.dumps({"tool": "test.touch@1.0.0", "caller": "ana", "agent": "bot", **said}).decode()
    return Told.read(Entry(0, Record("default", "w", 1, "call_1", kind, 100.0, body, b"", b"")))


@requirement("PPL-2")
def test_a_record_from_before_gates_were_timed_tells_what_it_can() -> None:
    [ran] = passages([written("outcome", status="done", latency_ms=3.0, attempts=1)], audited=True)
    assert {gate.verdict for gate in ran.gates[:10]} == {Said.PASSED}
    assert {gate.verdict for gate in ran.gates[10:]} == {Said.UNTOLD}
    assert (ran.at, ran.micros, ran.latency_ms) == (100.0, None, 3.0)
    [refused] = passages([written("refusal", status="refused", error_code="CONFLICT")], audited=True)
    assert {gate.verdict for gate in refused.gates} == {Said.UNTOLD}
    assert (refused.decided_by, refused.code) == (None, "CONFLICT")


@requirement("PPL-2")
def test_the_time_of_a_step_is_what_passed_since_the_one_before() -> None:
    over = [10, 15, 15, 40, 90, 91, 92, 93, 94, 200, 1_000_200, 1_000_300]
    [ran] = passages([written("outcome", status="done", gates=over)], audited=True)
    assert [gate.micros for gate in ran.gates] == [10, 5, 0, 25, 50, 1, 1, 1, 1, 106, 1_000_000, 100]
    assert ran.micros == over[-1]
    assert ran.at == pytest.approx(100.0 - over[-1] / 1e6)
    named = {"resolve": 5, "authorize": 9, "state": 30}
    [preview] = passages([written("refusal", status="refused", gates=named, gate="state")], audited=True)
    assert {gate.name: gate.micros for gate in preview.gates if gate.micros is not None} == {
        "resolve": 5,
        "authorize": 4,
        "state": 21,
    }
    assert (preview.decided_by, preview.gates[6].verdict) == ("state", Said.REFUSED)
