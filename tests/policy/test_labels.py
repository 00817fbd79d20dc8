"""Does what a session has read decide what it may do next? OBS-6 in its first form."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Gateway, HoldfastError, Observation, Principal, Status
from holdfast.gates import claim as claim_gate
from holdfast.lifecycle import GATES, admit, receive
from holdfast.model.call import Proposal
from holdfast.model.errors import Forbidden, NotFound
from holdfast.model.verdict import PASS
from holdfast.testing import ManualClock
from tests.lifecycle.conftest import store
from tests.policy.case import bundle_of
from tests.policy.office import ANA, EVE, KEEPS_IN, OLGA, OPEN, Office, Process, processes
from tests.requirements import requirement

__all__ = ["store"]

TO_CLAIM = GATES[:-1]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def process(store: str, tmp_path: Path, office: Office, clock: ManualClock) -> Process:
    return processes(store, tmp_path, office, clock)


async def read(gateway: Gateway, tool: str = "salaries", who: Principal = ANA, **said: Any) -> Observation:
    arguments = {"salaries": {"team": "a"}, "minutes": {"month": "may"}, "weather": {"city": "b"}}[tool]
    answer = await gateway.call(f"office.{tool}", arguments, principal=who, **said)
    assert answer.status is Status.DONE, answer
    return answer


async def send(gateway: Gateway, key: str, who: Principal = ANA, **said: Any) -> Observation:
    arguments = {"to": key, "text": "hello"}
    return await gateway.call("office.send", arguments, principal=who, key=key, **said)


def refused(answer: Observation) -> bool:
    if answer.status is Status.DONE:
        return False
    assert (answer.status, answer.code) == (Status.REFUSED, Code.POLICY_VIOLATION), answer
    assert "this session has read confidential data" in (answer.message or "")
    return True


@requirement("OBS-6")
async def test_nothing_is_sent_once_something_confidential_was_read(process: Process, office: Office) -> None:
    async with process() as gateway:
        assert not refused(await send(gateway, "k-1", session="s"))
        await read(gateway, "weather", session="s")
        assert not refused(await send(gateway, "k-2", session="s"))
        await read(gateway, session="s")
        assert refused(await send(gateway, "k-3", session="s"))
        assert not refused(await send(gateway, "k-4", session="another"))
    assert office.sent == ["k-1", "k-2", "k-4"]


@requirement("OBS-6")
async def test_a_label_holds_in_every_process_and_after_a_restart(process: Process, store: str) -> None:
    async with process() as one, process() as other:
        await read(one, session="s")
        assert refused(await send(other, "k-1", session="s"))
    async with process() as later:
        assert refused(await send(later, "k-2", session="s"))


@requirement("OBS-6")
@pytest.mark.parametrize(
    ("reads", "sends", "stopped"),
    [
        ({"session": "s"}, {}, True),  # to leave the session out is not to leave its labels behind
        ({"task": "t"}, {}, True),
        ({}, {"session": "s"}, True),  # what was read in no session is everywhere
        ({}, {"task": "t"}, True),
        ({}, {}, True),
        ({"task": "t"}, {"task": "t"}, True),
        ({"session": "s", "task": "t"}, {"task": "t"}, True),
        ({"session": "s", "task": "t"}, {"session": "s", "task": "u"}, True),
        ({"session": "s"}, {"session": "s", "task": "t"}, True),
        ({"session": "s"}, {"session": "z"}, False),
        ({"session": "s"}, {"task": "s"}, False),
        ({"task": "t"}, {"session": "s", "task": "z"}, False),
    ],
)
async def test_whose_labels_count_is_a_matter_of_what_the_call_names(
    reads: dict[str, Any],
    sends: dict[str, Any],
    stopped: bool,
    tmp_path: Path,
    office: Office,
    clock: ManualClock,
) -> None:
    async with processes("sqlite", tmp_path, office, clock)() as gateway:
        await read(gateway, **reads)
        assert refused(await send(gateway, "k", **sends)) is stopped


@requirement("OBS-6", "AUT-6")
async def test_a_session_is_its_persons_own(process: Process) -> None:
    elsewhere = Principal(tenant="acme", user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
    colleague = Principal(user="ana", agent="helper", scopes=frozenset({"**"}), trust=60)
    async with process() as gateway:
        await read(gateway, session="s")
        assert not refused(await send(gateway, "k-1", EVE, session="s"))
        assert not refused(await send(gateway, "k-2", elsewhere, session="s"))
        assert refused(await send(gateway, "k-3", colleague, session="s"))  # another agent of hers


@requirement("OBS-6")
async def test_what_is_secret_is_confidential_too(process: Process) -> None:
    async with process() as gateway:
        await read(gateway, "minutes", session="s")
        assert refused(await send(gateway, "k-1", session="s"))
        held = {one.label for one in await gateway.labels.held(OLGA, "s")}
        assert held == {"secret", "board-minutes"}


@requirement("OBS-6")
async def test_a_write_whose_answer_is_confidential_counts_and_so_does_its_replay(process: Process) -> None:
    async with process() as gateway:
        team = {"team": "a"}
        first = await gateway.call("office.grant_raise", team, principal=ANA, key="r", session="s")
        assert first.status is Status.DONE
        assert refused(await send(gateway, "k-1", session="s"))
        assert not refused(await send(gateway, "k-2", session="t"))
        again = await gateway.call("office.grant_raise", team, principal=ANA, key="r", session="t")
        assert (again.replayed, again.data) == (True, {"sum": 110})
        assert refused(await send(gateway, "k-3", session="t"))


@requirement("OBS-6")
async def test_what_brought_nothing_labels_nothing(process: Process) -> None:
    async with process() as gateway:
        failed = await gateway.call("office.minutes", {"month": "none"}, principal=ANA, session="s")
        assert failed.status is Status.FAILED
        wrong = await gateway.call("office.salaries", {"team": 7}, principal=ANA, session="s")
        assert wrong.status is Status.REFUSED
        assert not refused(await send(gateway, "k", session="s"))


@requirement("OBS-6", "LIF-6")
async def test_what_is_read_between_the_decision_and_the_claim_is_seen_by_the_claim(
    process: Process, office: Office
) -> None:
    async with process() as one, process() as other:
        proposal = Proposal("office.send", {"to": "x", "text": ""}, ANA, key="k", session="s")
        call = receive(proposal, one._ports)
        admitted = await admit(call, one._ports, TO_CLAIM)
        assert admitted is PASS
        assert call.labels == frozenset()
        await read(other, session="s")
        said = await admit(call, one._ports, (claim_gate.claim,))
        assert "what was read meanwhile forbids this call" in getattr(said, "message", "")
        assert (call.decision.facts or {})["labels"] == ["confidential"]
        assert call.operation is None
    assert office.sent == []


@requirement("OBS-6")
async def test_read_and_send_race_and_no_send_was_decided_after_the_read_had_ended(
    process: Process, office: Office
) -> None:
    """Whoever proposes a send once the answer of the read is known is refused, whatever the process."""
    async with process() as one, process() as other:
        for turn in range(12):
            name = f"s-{turn}"
            ended = asyncio.Event()

            async def reading(name: str = name, ended: asyncio.Event = ended, turn: int = turn) -> None:
                await read(one if turn % 2 else other, session=name)
                ended.set()

            async def sending(
                gateway: Gateway, n: int, name: str = name, ended: asyncio.Event = ended
            ) -> bool:
                for _ in range(n):
                    await asyncio.sleep(0)
                late = ended.is_set()
                stopped = refused(await send(gateway, f"{name}-{n}", session=name))
                assert stopped or not late, "it was sent although the data was out"
                return stopped

            racing = [sending(gateway, n) for n in (0, 3, 9, 27) for gateway in (one,)]
            racing += [sending(other, n) for n in (1, 5, 15, 45)]
            await asyncio.gather(reading(), *racing)
            assert refused(await send(one, f"{name}-last", session=name))
            assert refused(await send(other, f"{name}-end", session=name))


@requirement("OBS-6")
async def test_an_operator_lifts_a_label_and_the_next_reading_brings_it_back(
    process: Process, clock: ManualClock
) -> None:
    async with process() as one, process() as other:
        await read(one, session="s")
        with pytest.raises(Forbidden):
            await other.labels.lift(ANA, "s", "confidential", "please")
        with pytest.raises(HoldfastError, match="say why"):
            await other.labels.lift(OLGA, "s", "confidential", " ")
        lifting = asyncio.ensure_future(other.labels.lift(OLGA, "s", "confidential", "it was a test"))
        await clock.drive(lifting)
        assert await lifting == "session:ana/s"
        assert not refused(await send(one, "k-1", session="s"))
        with pytest.raises(NotFound, match="does not hold 'confidential'; it holds nothing"):
            await other.labels.lift(OLGA, "s", "confidential", "again")
        await read(one, session="s")
        assert refused(await send(other, "k-2", session="s"))
        [record] = [
            json.loads(entry.record.body)
            for entry in await one.log.since(OLGA, 0.0, -1, 1000)
            if '"lift_label"' in entry.record.body
        ]
        assert (record["caller"], record["label"], record["note"]) == (
            "olga",
            "confidential",
            "it was a test",
        )


@requirement("OBS-6")
async def test_what_follows_from_another_label_is_lifted_with_that(process: Process) -> None:
    async with process() as gateway:
        await read(gateway, "minutes", session="s")
        with pytest.raises(NotFound, match="holds 'confidential' because it holds 'secret'; lift that"):
            await gateway.labels.lift(OLGA, "s", "confidential", "why not")


@requirement("OBS-6", "AUD-1")
async def test_the_records_tell_what_a_call_brought_and_what_a_decision_knew(process: Process) -> None:
    async with process() as gateway:
        seen = await read(gateway, session="s")
        stopped = await send(gateway, "k", session="s")
        bodies = [json.loads(e.record.body) for e in await gateway.log.of_call(OLGA, seen.call_id, -1, 10)]
        assert [body.get("labels") for body in bodies] == [None, ["confidential"]]
        recalled = await gateway.log.recall(OLGA, stopped.call_id)
        assert recalled.facts is not None
        assert (recalled.facts["labels"], recalled.facts["session"]) == (["confidential"], "s")
        assert {check.what: check.same for check in recalled.checks}["policy then"]


@requirement("OBS-6")
async def test_labels_are_looked_up_only_where_a_policy_asks(process: Process) -> None:
    async with process(OPEN) as gateway:
        await read(gateway, session="s")
        call = receive(
            Proposal("office.send", {"to": "x", "text": ""}, ANA, key="k", session="s"), gateway._ports
        )
        await admit(call, gateway._ports, GATES[:5])
        assert call.labels is None
        assert await gateway.policies.promote(OLGA, bundle_of(KEEPS_IN, "rules"))
        assert refused(await send(gateway, "k-2", session="s"))  # what was read before counts


@requirement("OBS-6")
async def test_a_label_that_nobody_brought_again_for_long_is_forgotten(
    process: Process, clock: ManualClock
) -> None:
    async with process() as gateway:
        await read(gateway, session="s")
        await clock.advance(20 * 86_400.0)
        await read(gateway, session="s")
        await clock.advance(20 * 86_400.0)
        await gateway.labels.forget()
        assert refused(await send(gateway, "k-1", session="s"))
        await clock.advance(11 * 86_400.0)
        await gateway.labels.forget()
        assert not refused(await send(gateway, "k-2", session="s"))
