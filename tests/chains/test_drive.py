"""A run that is driven as often as it takes does each thing once, or takes it back."""

import pytest

from holdfast import Effect, NoEffect, tool
from holdfast.model.run import RunState, StepState
from tests.chains.world import ADA, Fragile, Killed, Shop, do, shopping
from tests.requirements import requirement

FIVE = ("reserve", "charge", "pack", "ship", "bill")


@requirement("CHN-2")
async def test_steps_follow_each_other_and_hand_on_what_they_found() -> None:
    async with shopping() as shop:
        second = {"id": "again", "tool": "shop.pack", "with": {"item": "=reserve.id"}}
        run = await shop.begin(do("reserve"), second, output={"first": "=reserve.id", "second": "=again.id"})
        assert await shop.drive(run) is RunState.COMPLETED
        assert run.run.output == {"first": "reserve-tea", "second": "pack-reserve-tea"}
        assert shop.world.did == ["reserve", "pack"]


@requirement("CHN-7")
async def test_a_read_that_was_done_is_not_read_again() -> None:
    async with shopping() as shop:
        run = await shop.begin(do("look"), do("reserve"), output={"price": "=look.price"})
        run.at, run.after = 1, False
        with pytest.raises(Killed):
            await shop.drive(run)
        run.at = None
        await shop.drive(run)
        assert run.run.output == {"price": 1}
        assert shop.world.did == ["look", "reserve"]


@requirement("SAG-1", "CHN-7")
@pytest.mark.parametrize("after", [False, True], ids=["before the line", "after the line"])
@pytest.mark.parametrize("at", range(len(FIVE)))
async def test_a_run_killed_at_any_step_is_finished_by_the_next_and_acts_once(at: int, after: bool) -> None:
    async with shopping() as shop:
        run = await shop.begin(*map(do, FIVE), saga=True)
        run.at, run.after = at, after
        with pytest.raises(Killed):
            await shop.drive(run)
        run.at = None
        assert await shop.drive(run) is RunState.COMPLETED
        assert shop.world.did == list(FIVE)


@requirement("SAG-1", "CHN-7")
@pytest.mark.parametrize("after", [False, True], ids=["before the line", "after the line"])
@pytest.mark.parametrize("at", range(9))
async def test_a_run_killed_while_it_is_undone_is_undone_by_the_next_and_once(at: int, after: bool) -> None:
    async with shopping() as shop:
        shop.world.failing["bill"] = 100
        run = await shop.begin(*map(do, FIVE), saga=True)
        run.at, run.after = at, after
        with pytest.raises(Killed):
            await shop.drive(run)
        run.at = None
        assert await shop.drive(run) is RunState.COMPENSATED
        done = list(FIVE[:-1])
        assert shop.world.did == [*done, *(f"un{name}" for name in reversed(done))]
        assert shop.world.standing == []


@requirement("SAG-1")
async def test_what_is_undone_is_undone_from_the_last_to_the_first_and_the_failure_is_told() -> None:
    async with shopping() as shop:
        shop.world.failing["pack"] = 1
        run = await shop.begin(do("reserve"), do("charge"), do("pack"), saga=True)
        assert await shop.drive(run) is RunState.COMPENSATED
        assert shop.world.did == ["reserve", "charge", "uncharge", "unreserve"]
        assert "pack is away" in run.run.why
        lines = {line.name: line for line in await run.lines()}
        assert lines["pack"].state is StepState.FAILED
        assert lines["charge~undo"].state is StepState.DONE


@requirement("SAG-3")
async def test_an_undoing_that_fails_waits_for_a_person_and_goes_on_from_there() -> None:
    async with shopping() as shop:
        shop.world.failing.update({"pack": 1, "uncharge": 100})
        run = await shop.begin(do("reserve"), do("charge"), do("pack"), saga=True)
        assert await shop.drive(run) is RunState.COMPENSATION_FAILED
        assert "resume the run, or abandon it" in run.run.waits_for
        assert "uncharge is away" in run.run.waits_for
        assert shop.world.standing == ["charge", "reserve"]
        shop.world.failing.clear()
        assert await shop.drive(run) is RunState.COMPENSATED
        assert shop.world.standing == []


@requirement("SAG-2")
async def test_after_what_cannot_be_taken_back_a_run_only_goes_forward() -> None:
    async with shopping() as shop:
        shop.world.failing["ship"] = 1
        run = await shop.begin(do("reserve"), do("tell"), do("ship"), saga=True)
        assert await shop.drive(run) is RunState.RUNNING
        assert "'tell' is done and cannot be taken back" in run.run.waits_for
        assert shop.world.standing == ["reserve", "tell"]
        assert await shop.drive(run) is RunState.COMPLETED
        assert shop.world.did == ["reserve", "tell", "ship"]


@requirement("CHN-5")
async def test_a_step_says_what_its_failure_means() -> None:
    async with shopping() as shop:
        shop.world.failing.update({"charge": 1, "pack": 2, "ship": 1})
        steps = (
            do("charge", failure="continue"),
            do("pack", retries=2),
            do("ship", fallbacks=["shop.bill"], failure="fallback"),
        )
        run = await shop.begin(*steps, output={"charge": "=charge.id", "ship": "=ship.id"})
        assert await shop.drive(run) is RunState.COMPLETED
        assert shop.world.did == ["pack", "bill"]
        assert run.run.output == {"ship": "bill-tea"}


@requirement("CHN-5")
async def test_without_a_saga_what_was_done_stays_and_is_reported() -> None:
    async with shopping() as shop:
        shop.world.failing["charge"] = 1
        run = await shop.begin(do("reserve"), do("charge"), do("pack"))
        assert await shop.drive(run) is RunState.ABORTED
        assert shop.world.did == ["reserve"]
        assert run.run.output == {
            "completed": {"reserve": {"id": "reserve-tea"}},
            "failed": {"charge": "charge is away"},
        }


@requirement("CHN-4")
async def test_a_value_that_is_not_there_fails_its_step_with_the_path() -> None:
    async with shopping() as shop:
        wrong = {"id": "pack", "tool": "shop.pack", "with": {"item": "=reserve.nothing"}}
        run = await shop.begin(do("reserve"), wrong, saga=True)
        assert await shop.drive(run) is RunState.COMPENSATED
        assert "steps[1].with.item: '=reserve.nothing' finds nothing" in run.run.why
        assert shop.world.standing == []


@requirement("CHN-2")
async def test_a_branch_and_a_loop_take_the_way_that_holds() -> None:
    async with shopping() as shop:
        arms = [{"when": "look.price > 1", "do": do("charge")}, {"otherwise": do("pack")}]
        rounds = {"repeat": 5, "until": "peek.price > 2", "do": {**do("look"), "id": "peek"}}
        run = await shop.begin(do("look"), {"branch": arms}, rounds, do("ship", when="peek.price > 100"))
        assert await shop.drive(run) is RunState.COMPLETED
        assert shop.world.did == ["look", "pack", "look", "look"]
        names = [line.name for line in await run.lines()]
        assert names == ["look", "pack", "peek#1", "peek#2", "ship"]


@requirement("CHN-3")
async def test_all_wait_for_all_and_one_that_fails_stops_and_undoes_the_rest() -> None:
    async with shopping() as shop:
        both = {"parallel": [do("reserve"), do("charge")]}
        run = await shop.begin(both, saga=True)
        assert await shop.drive(run) is RunState.COMPLETED
        assert sorted(shop.world.did) == ["charge", "reserve"]
    async with shopping() as shop:
        shop.world.failing["charge"] = 1
        run = await shop.begin(both, saga=True)
        assert await shop.drive(run) is RunState.COMPENSATED
        assert shop.world.standing == []


@requirement("CHN-3")
@pytest.mark.parametrize(
    ("join", "failing", "state"),
    [
        ("first", ["reserve", "charge"], RunState.COMPLETED),
        ("first", ["reserve", "charge", "pack"], RunState.ABORTED),
        ({"quorum": 0.6}, ["charge"], RunState.COMPLETED),
        ({"quorum": 0.6}, ["charge", "pack"], RunState.ABORTED),
    ],
)
async def test_a_join_goes_on_with_as_many_as_it_needs(
    join: object, failing: list[str], state: RunState
) -> None:
    async with shopping() as shop:
        for name in failing:
            shop.world.failing[name] = 1
        run = await shop.begin({"parallel": [do("reserve"), do("charge"), do("pack")], "join": join})
        assert await shop.drive(run) is state
        if state is RunState.ABORTED:
            told = run.run.why
            assert [f"branch {number}" in told for number in range(3)] == [True] * 3


async def _failures(shop: Shop, run: Fragile) -> dict[str, tuple[str, bool]]:
    """The failed steps of a run with their tools, and whether each names a call of that tool."""
    found = {}
    for line in await run.lines():
        if line.state is StepState.FAILED:
            seen = await shop.gateway.find(ADA, line.call_id)
            found[line.name] = (line.tool, seen is not None and seen.tool == line.tool)
    return found


@requirement("CHN-5")
async def test_a_step_that_failed_leads_to_its_tool_and_its_call() -> None:
    async with shopping() as shop:
        shop.world.failing.update({"charge": 1, "pack": 1, "bill": 1})
        steps = (do("charge", failure="continue"), do("pack", fallbacks=["shop.bill"], failure="fallback"))
        run = await shop.begin(*steps)
        assert await shop.drive(run) is RunState.ABORTED
        assert await _failures(shop, run) == {"charge": ("shop.charge", True), "pack": ("shop.pack", True)}


@requirement("CHN-5")
async def test_a_step_that_could_not_be_called_names_its_tool_and_no_call() -> None:
    async with shopping() as shop:
        wrong = {"id": "pack", "tool": "shop.pack", "with": {"item": "=reserve.nothing"}}
        run = await shop.begin(do("reserve"), wrong)
        assert await shop.drive(run) is RunState.ABORTED
        told = [(line.tool, line.call_id) for line in await run.lines() if line.state is StepState.FAILED]
        assert told == [("shop.pack", "")]


@requirement("CHN-3", "CHN-5")
@pytest.mark.parametrize(
    ("join", "failing", "state"),
    [
        ("all", ["charge"], RunState.ABORTED),
        ("first", ["reserve", "charge"], RunState.COMPLETED),
        ("first", ["reserve", "charge", "pack"], RunState.ABORTED),
    ],
)
async def test_branches_that_failed_are_in_the_journal_with_their_tools_and_calls(
    join: str, failing: list[str], state: RunState
) -> None:
    async with shopping() as shop:
        shop.world.failing.update(dict.fromkeys(failing, 1))
        run = await shop.begin({"parallel": [do("reserve"), do("charge"), do("pack")], "join": join})
        assert await shop.drive(run) is state
        assert await _failures(shop, run) == {name: (f"shop.{name}", True) for name in failing}
        if state is RunState.ABORTED:
            assert run.run.output["failed"] == {name: f"{name} is away" for name in failing}


@requirement("CHN-3", "CHN-7")
async def test_a_branch_that_failed_has_failed_when_the_run_is_driven_again() -> None:
    async with shopping() as shop:
        shop.world.failing["reserve"] = 1
        either = {"parallel": [do("reserve"), do("charge")], "join": {"quorum": 0.5}}
        run = await shop.begin(either, do("ship"))
        run.at, run.after = 2, False  # before the choice is written down
        with pytest.raises(Killed):
            await shop.drive(run)
        run.at = None
        assert await shop.drive(run) is RunState.COMPLETED
        assert shop.world.did == ["charge", "ship"]
        assert list(await _failures(shop, run)) == ["reserve"]


@requirement("CHN-3")
async def test_a_branch_that_failed_in_a_later_round_is_not_what_the_chain_answers() -> None:
    asked: list[str] = []

    @tool(effect=Effect.READ_ONLY, scopes=["shop:read"])
    async def guess(item: str) -> dict[str, int]:
        """Guess a price, once."""
        asked.append(item)
        if len(asked) > 1:
            raise NoEffect("no idea")
        return {"price": 100}

    async with shopping(guess) as shop:
        either = {
            "parallel": [do("guess"), do("look")],
            "join": {"best": "result.price > 50 ? 2.0 : 1.0"},
        }
        run = await shop.begin({"repeat": 2, "do": either})
        assert await shop.drive(run) is RunState.COMPLETED
        assert run.run.output == {"price": 2}
        assert list(await _failures(shop, run)) == ["guess#2"]


@requirement("CHN-3")
async def test_a_branch_that_is_not_needed_is_taken_back() -> None:
    async with shopping() as shop:
        best = {
            "parallel": [do("reserve"), do("charge")],
            "join": {"best": "result.id == 'charge-tea' ? 2.0 : 1.0"},
        }
        run = await shop.begin(
            best, do("ship"), saga=True, output={"charge": "=charge.id", "reserve": "=reserve.id"}
        )
        assert await shop.drive(run) is RunState.COMPLETED
        assert run.run.output == {"charge": "charge-tea"}
        assert shop.world.standing == ["charge", "ship"]


@requirement("CHN-3", "CHN-7")
async def test_what_a_join_chose_stays_chosen_when_the_run_is_driven_again() -> None:
    async with shopping() as shop:
        shop.world.failing["reserve"] = 1
        either = {"parallel": [do("reserve"), do("charge")], "join": "first"}
        run = await shop.begin(either, do("ship"), output={"charge": "=charge.id", "reserve": "=reserve.id"})
        run.at, run.after = 3, False  # before 'ship' is written down
        with pytest.raises(Killed):
            await shop.drive(run)
        run.at = None
        assert await shop.drive(run) is RunState.COMPLETED
        assert run.run.output == {"charge": "charge-tea"}
        assert shop.world.did == ["charge", "ship"]


@requirement("CHN-5")
@pytest.mark.parametrize(("most", "state"), [(1, RunState.COMPLETED), (0, RunState.COMPENSATED)])
async def test_what_a_chain_answers_is_held_to_what_it_promises_when_it_is_there(
    most: int, state: RunState
) -> None:
    promised = {"type": "object", "properties": {"price": {"type": "integer", "maximum": most}}}
    async with shopping() as shop:
        said = {"output": {"price": "=look.price"}, "output_schema": promised, "saga": True}
        run = await shop.begin(do("reserve"), do("look"), **said)
        assert await shop.drive(run) is state, run.run.why
        assert shop.world.did[2:] == ([] if state is RunState.COMPLETED else ["unreserve"])
        assert ("at '/price'" in run.run.why) is (state is RunState.COMPENSATED)
