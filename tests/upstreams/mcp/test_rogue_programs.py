"""Does a program that misbehaves hurt anybody but itself?"""

import asyncio
import logging

import pytest

from holdfast.model.errors import Code, NoEffect
from holdfast.upstreams.mcp.change import Change
from holdfast.upstreams.mcp.errors import Garbage, Lost
from holdfast.upstreams.mcp.target import StdioTarget
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.requirements import requirement
from tests.upstreams.mcp.callers import AT_ONCE, SOON_S, Heard, attempt, upstream
from tests.upstreams.mcp.places import rogue_program

A_DEADLINE_S = 0.2
DONE = {"text": "done"}


async def gives_up(rogue: McpUpstream, how: str) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(A_DEADLINE_S):
            await rogue.invoke(attempt("tool_0", {"how": how}))


@pytest.mark.parametrize("how", ["invalid", "wrong-id", "text-id", "noise", "storm", "fine"])
@requirement("PRO-1")
async def test_the_answer_is_found_among_everything_else(how: str) -> None:
    async with upstream(rogue_program()) as rogue, asyncio.timeout(SOON_S):
        for _ in range(3):
            assert (await rogue.invoke(attempt("tool_0", {"how": how}))).data == DONE
        assert rogue.starts == 1


async def test_a_second_answer_is_dropped() -> None:
    async with upstream(rogue_program()) as rogue, asyncio.timeout(SOON_S):
        calls = [rogue.invoke(attempt("tool_0", {"how": "twice"})) for _ in range(50)]
        assert {answer.data["text"] for answer in await asyncio.gather(*calls)} == {"first"}
        assert (await rogue.invoke(attempt("tool_0"))).data == DONE


@requirement("EXE-1")
async def test_a_deadline_is_kept_while_others_are_answered() -> None:
    async with upstream(rogue_program()) as rogue:
        hanging = [asyncio.ensure_future(gives_up(rogue, "hang")) for _ in range(5)]
        assert (await rogue.invoke(attempt("tool_0"))).data == DONE
        await asyncio.gather(*hanging)
        assert (await rogue.invoke(attempt("tool_0"))).data == DONE
        assert rogue.starts == 1


@pytest.mark.parametrize("how", ["drip", "flood", "endless-line", "deaf"])
@requirement("EXE-1")
async def test_a_deadline_is_kept_whatever_comes_instead_of_an_answer(how: str) -> None:
    async with upstream(rogue_program()) as rogue:
        if how == "deaf":
            assert (await rogue.invoke(attempt("tool_0", {"how": how}))).data == DONE
        for _ in range(3):
            await gives_up(rogue, how)


@pytest.mark.parametrize("how", ["flood", "endless-line", "storm"])
@requirement("EXE-9")
async def test_another_upstream_goes_on_while_one_floods(how: str) -> None:
    async with upstream(rogue_program()) as rogue, upstream(rogue_program()) as other:
        flooding = asyncio.ensure_future(rogue.invoke(attempt("tool_0", {"how": how})))
        async with asyncio.timeout(SOON_S):
            answers = [(await other.invoke(attempt("tool_0"))).data for _ in range(300)]
        assert answers == [DONE] * 300
        if how != "storm":
            assert not flooding.done()
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)


@requirement("IDM-5")
async def test_what_is_no_outcome_proves_nothing() -> None:
    async with upstream(rogue_program()) as rogue:
        with pytest.raises(Garbage):
            await rogue.invoke(attempt("tool_0", {"how": "no-outcome"}))


async def test_an_answer_that_is_too_long_is_an_error_that_says_so() -> None:
    async with upstream(rogue_program()) as rogue:
        with pytest.raises(Garbage, match="16777216 bytes"):
            await rogue.invoke(attempt("tool_0", {"how": "large"}))
        assert (await rogue.invoke(attempt("tool_0"))).data == DONE


@requirement("REG-2")
@pytest.mark.parametrize(("how", "tools"), [("endless", 200), ("circle", 4)])
async def test_a_list_without_end_is_cut_and_reported(how: str, tools: int) -> None:
    async with upstream(rogue_program(how)) as rogue:
        found = await rogue.snapshot(SOON_S)
    assert len(found.tools) == tools
    assert "was cut" in found.faults[0]


@requirement("REG-2")
async def test_what_is_no_descriptor_is_reported_and_the_rest_kept() -> None:
    async with upstream(rogue_program("untidy")) as rogue:
        found = await rogue.snapshot(SOON_S)
    assert [tool["name"] for tool in found.tools] == ["tool_0"]
    assert len(found.faults) == 3


@requirement("REG-2")
async def test_a_version_nobody_here_speaks_is_an_error_that_names_both_sides() -> None:
    rogue = McpUpstream("shop", rogue_program("future"))
    rogue.start()
    try:
        assert not await rogue.ready(SOON_S)
        assert rogue.last_error is not None
        assert "2099-01-01" in rogue.last_error
        assert "2026-07-28" in rogue.last_error
    finally:
        await rogue.close()


async def test_a_program_that_ignores_what_it_does_not_know_is_shaken_hands_with() -> None:
    async with upstream(rogue_program("ignores")) as rogue:
        assert (await rogue.invoke(attempt("tool_0"))).data == DONE


async def test_noise_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with upstream(rogue_program()) as rogue:
        with caplog.at_level(logging.INFO, "holdfast"):
            for _ in range(5):
                await rogue.invoke(attempt("tool_0", {"how": "noise"}))
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_storm_of_changes_is_told_and_nothing_is_lost() -> None:
    heard = Heard()
    async with upstream(rogue_program(), on_change=heard) as rogue:
        await rogue.invoke(attempt("tool_0", {"how": "storm"}))
    assert heard.changes.count(Change("tools")) == 20_000


@requirement("IDM-5")
async def test_a_process_that_dies_in_the_middle_leaves_it_open_and_comes_back() -> None:
    heard = Heard()
    async with upstream(rogue_program(), on_change=heard) as rogue:
        with pytest.raises(Lost):
            await rogue.invoke(attempt("tool_0", {"how": "die"}))
        await heard.until("up", 2)
        assert (await rogue.invoke(attempt("tool_0"))).data == DONE
    assert [change.kind for change in heard.changes] == ["up", "down", "up", "down"]


@requirement("IDM-5")
async def test_every_call_in_flight_is_told_when_the_process_dies() -> None:
    async with upstream(rogue_program()) as rogue:
        waiting = [asyncio.ensure_future(rogue.invoke(attempt("tool_0", {"how": "hang"}))) for _ in range(5)]
        dying = rogue.invoke(attempt("tool_0", {"how": "die"}))
        async with asyncio.timeout(SOON_S):
            ends = await asyncio.gather(*waiting, dying, return_exceptions=True)
    assert [type(end) for end in ends] == [Lost] * 6


async def test_a_call_waits_for_a_restart_that_is_under_way() -> None:
    async with upstream(rogue_program()) as rogue:
        with pytest.raises(Lost):
            await rogue.invoke(attempt("tool_0", {"how": "die"}))
        assert (await rogue.invoke(attempt("tool_0"))).data == DONE
        assert rogue.starts == 2


@requirement("IDM-5")
async def test_a_program_that_cannot_be_started_gets_nothing_sent() -> None:
    rogue = McpUpstream("shop", StdioTarget("no-such-program-anywhere"))
    rogue.start()
    try:
        assert not await rogue.ready(SOON_S)
        assert rogue.state == "down"
        with pytest.raises(NoEffect, match="cannot start 'no-such-program-anywhere'") as told:
            await rogue.invoke(attempt("tool_0"))
        assert told.value.code is Code.DEPENDENCY_UNAVAILABLE
    finally:
        await rogue.close()


async def test_why_a_program_ended_is_told_in_its_own_words() -> None:
    rogue = McpUpstream("shop", rogue_program("crash"))
    rogue.start()
    try:
        assert not await rogue.ready(SOON_S)
        assert rogue.last_error is not None
        assert "status 1" in rogue.last_error
        assert "cannot find my settings" in rogue.last_error
    finally:
        await rogue.close()


@requirement("EXE-1")
async def test_a_program_that_hangs_at_its_start_is_given_up() -> None:
    rogue = McpUpstream("shop", rogue_program("silent"), connect_s=A_DEADLINE_S, backoff=AT_ONCE)
    rogue.start()
    try:
        assert not await rogue.ready(SOON_S)
        assert rogue.last_error is not None
        assert "did not answer" in rogue.last_error
    finally:
        await rogue.close()


@requirement("REG-3")
async def test_a_program_that_answers_no_probe_is_started_again() -> None:
    heard = Heard()
    async with upstream(rogue_program("mute"), on_change=heard) as rogue:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await rogue.ping(A_DEADLINE_S)
        await heard.until("up", 2)
        assert rogue.starts == 2


async def test_a_process_that_reads_nothing_more_is_not_fed_without_end() -> None:
    async with upstream(rogue_program()) as rogue:
        await rogue.invoke(attempt("tool_0", {"how": "deaf"}))
        big = attempt("tool_0", {"text": "x" * 1_000_000})
        unread = [asyncio.ensure_future(rogue.invoke(big)) for _ in range(20)]
        told, _ = await asyncio.wait(unread, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(NoEffect, match="has not read"):
            told.pop().result()
        for work in unread:
            work.cancel()
        await asyncio.gather(*unread, return_exceptions=True)


async def test_a_program_gets_few_variables_but_those_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_MASTER_KEY", "not for children")
    async with upstream(rogue_program("", API_TOKEN="t-1")) as rogue:
        given = (await rogue.invoke(attempt("tool_0", {"how": "environment"}))).data
    assert given["API_TOKEN"] == "t-1"
    assert "PATH" in given
    assert "HOLDFAST_MASTER_KEY" not in given


async def test_nothing_is_started_before_it_is_needed_or_after_it_was_closed() -> None:
    idle = McpUpstream("shop", rogue_program())
    assert idle.starts == 0
    assert (await idle.invoke(attempt("tool_0"))).data == DONE
    await idle.close()
    with pytest.raises(NoEffect, match="is closed"):
        await idle.invoke(attempt("tool_0"))
    assert idle.starts == 1
