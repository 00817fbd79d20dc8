"""A tool that only submits: what its caller is told, and what becomes of it."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import exits
from holdfast.model.call import Call, Decision, Proposal
from holdfast.model.holders import holders
from holdfast.model.observation import Status
from holdfast.model.vocabulary import State
from tests.jobs.works import ADA, Works, Yard, tools, yard
from tests.requirements import requirement
from tests.stored import ALL

stores = pytest.mark.parametrize("kind", ALL)


@stores
@requirement("EXE-6")
async def test_who_waits_long_enough_gets_what_the_job_made(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        here.after(5.0, here.works.finish)
        seen = await here.render()
        assert (seen.status, seen.data, seen.pending) == (Status.DONE, {"file": "film.mp4"}, None)
        assert seen.outcome is not None
        assert seen.outcome.rung == "accepted"
        assert seen.provenance is not None
        assert seen.mutations
        assert here.works.submitted == ["tea"]


@stores
@requirement("EXE-6")
async def test_who_does_not_is_told_how_far_it_is_and_finds_the_outcome_later(
    kind: str, tmp_path: Path
) -> None:
    async with yard(kind, tmp_path) as here:
        here.after(1.0, lambda: here.works.jobs["job-1"].update(share=0.4))
        seen = await here.render(deadline_ms=8000)
        assert (seen.status, seen.code, seen.http_status) == (Status.PARTIAL, None, 200)
        assert exits.of(seen) is exits.Exit.UNKNOWN
        assert seen.pending is not None
        assert (seen.pending["kind"], seen.pending["id"], seen.pending["progress"]) == ("job", "job-1", 0.4)
        assert seen.pending["estimated_at"]
        assert seen.pending["give_up_at"]
        assert seen.message is not None
        assert seen.message.startswith("job 'job-1' goes on, 40% done, expected to end at 20")
        here.works.finish()
        now = await here.ended(seen)
        assert (now.status, now.data, now.call_id) == (Status.DONE, {"file": "film.mp4"}, seen.call_id)


@stores
@requirement("EXE-6")
@requirement("IDM-4")
async def test_the_same_key_never_submits_twice(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        first = await here.render(deadline_ms=3000)
        again = await here.render(deadline_ms=3000)
        assert (again.status, again.replayed, again.call_id) == (Status.PARTIAL, True, first.call_id)
        here.works.finish()
        last = await here.render(deadline_ms=20_000)
        assert (last.status, last.replayed, last.data) == (Status.DONE, True, {"file": "film.mp4"})
        assert here.works.submitted == ["tea"]


@requirement("EXE-6")
async def test_a_caller_who_names_no_deadline_is_not_held_for_a_day(tmp_path: Path) -> None:
    async with yard("memory", tmp_path, *tools(works := Works(), timeout_class="async"), works=works) as here:
        began = here.clock.monotonic()
        seen = await here.render()
        assert seen.status is Status.PARTIAL
        assert 29.0 <= here.clock.monotonic() - began <= 31.0


@stores
@requirement("EXE-6")
async def test_it_is_asked_after_less_and_less_often(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        await here.render(deadline_ms=120_000)
        pauses = [b - a for a, b in zip(here.works.looked, here.works.looked[1:], strict=False)]
        assert len(pauses) >= 4
        for pause, longest in zip(pauses, (4.0, 8.0, 16.0, 16.0, 16.0, 16.0), strict=False):
            assert 0.8 * longest <= pause <= longest + 0.01


@stores
@requirement("EXE-6")
async def test_a_failed_job_is_a_failed_call(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        here.after(1.0, lambda: here.works.fail("no paint left"))
        seen = await here.render()
        assert (seen.status, seen.code) == (Status.FAILED, "INTERNAL")
        assert "no paint left" in (seen.message or "")
        again = await here.render()
        assert again.replayed
        assert again.status is Status.FAILED
        assert here.works.submitted == ["tea"]


@stores
@requirement("EXE-6")
async def test_a_failure_that_the_contract_knows_is_told_as_it_says(kind: str, tmp_path: Path) -> None:
    errors = [{"match": "queue full", "code": "RATE_LIMITED", "effect": "none"}]
    works = Works()
    async with yard(kind, tmp_path, *tools(works, errors=errors), works=works) as here:
        here.after(1.0, lambda: works.fail("queue full"))
        seen = await here.render()
        assert (seen.status, seen.code, seen.remedy.retryable) == (Status.FAILED, "RATE_LIMITED", True)
        here.after(1.0, lambda: works.finish("job-2"))
        again = await here.render()
        assert (again.status, works.submitted) == (Status.DONE, ["tea", "tea"])


@stores
@requirement("EXE-6")
@requirement("VER-1")
async def test_what_it_made_is_held_against_the_output_schema(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        here.after(1.0, lambda: here.works.finish(file=7))
        seen = await here.render()
        assert (seen.status, seen.code, seen.data) == (Status.UNKNOWN, "OUTCOME_UNKNOWN", None)
        assert "does not fit its schema" in (seen.message or "")


@requirement("EXE-6")
async def test_an_answer_that_names_no_job_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    job: Any = {"id": "result.ticket", "poll": {"tool": "look", "arguments": {"job": "=job"}}, "done": "true"}
    works = Works()
    async with yard("memory", tmp_path, *tools(works, job), works=works) as here:
        seen = await here.render()
        assert (seen.status, seen.pending) == (Status.UNKNOWN, None)
        assert "names no job" in (seen.message or "")


@stores
@requirement("EXE-6")
async def test_while_nobody_answers_it_is_tried_again(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        here.works.away = True
        seen = await here.render(deadline_ms=10_000)
        assert seen.status is Status.PARTIAL
        here.works.away = False
        here.works.finish()
        assert (await here.ended(seen)).status is Status.DONE


@stores
@requirement("EXE-6")
@requirement("IDM-6")
async def test_neither_the_sweep_nor_time_ends_what_goes_on(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path, *tools(works := Works(), {**_PATIENT}), works=works) as here:
        seen = await here.render(deadline_ms=3000)
        await here.clock.advance(4 * 86_400.0)
        await here.driven(here.gateway.tidy(forget=True))
        now = await here.found(seen)
        assert now.status is Status.PARTIAL
        works.finish()
        await here.clock.advance(3700.0)
        assert (await here.found(seen)).data == {"file": "film.mp4"}


@stores
@requirement("EXE-6")
async def test_a_person_may_settle_it_and_nobody_asks_any_more(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path) as here:
        seen = await here.render(deadline_ms=3000)
        person = here.gateway.identity.at_terminal()
        operation = await here.gateway._ports.ledger.find_call("default", seen.call_id)
        assert operation is not None
        assert operation.state is State.UNKNOWN
        now = await here.gateway.settle(person, seen.call_id, "committed", "I saw the film")
        assert (now.status, now.pending) == (Status.DONE, None)
        await here.clock.advance(120.0)
        looks = len(here.works.looked)
        await here.clock.advance(600.0)
        assert len(here.works.looked) == looks


class Masking:
    """Allows everything, and shows no job's name and no file's."""

    version = "masking"

    def decide(self, call: Call) -> Decision:
        return Decision("d-1", True, redact=("/file", "/job"), version=self.version)


@stores
@requirement("EXE-6")
@requirement("POL-1")
async def test_what_policy_masks_is_masked_in_what_the_job_made_and_in_its_name(
    kind: str, tmp_path: Path
) -> None:
    async with yard(kind, tmp_path, policy=Masking()) as here:
        seen = await here.render(deadline_ms=3000)
        assert seen.pending is not None
        assert "id" not in seen.pending
        assert "job-1" not in str(seen.to_dict())
        here.works.finish()
        now = await here.ended(seen)
        assert (now.status, "film.mp4" in str(now.to_dict())) == (Status.DONE, False)


@stores
@requirement("EXE-6")
async def test_what_it_made_is_seen_by_its_session_once_it_is_told(kind: str, tmp_path: Path) -> None:
    async with yard(kind, tmp_path, *tools(works := Works(), labels=["secret"]), works=works) as here:
        seen = await here.render(deadline_ms=3000, session="s-1")
        assert await _labels(here) == frozenset()
        works.finish()
        await here.ended(seen)
        assert "secret" in await _labels(here)


async def _labels(here: Yard) -> frozenset[str]:
    labels = here.gateway._ports.labels
    assert labels is not None
    proposal = Proposal(tool="works.look", arguments={}, principal=ADA, session="s-1")
    return frozenset(await labels.of(holders(proposal)))


_PATIENT = {
    "id": "result.job",
    "poll": {"tool": "look", "arguments": {"job": "=job"}},
    "done": "state.state == 'done'",
    "result": "state.made",
    "every_s": 3600.0,
    "slowest_s": 3600.0,
    "max_wait_s": 30 * 86_400.0,
}
