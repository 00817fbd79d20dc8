"""A way is taken by what a tool said where it is sure enough, and by what a person said where it is not."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Effect, Floor, Undo, tool
from holdfast.model.errors import Forbidden, HoldfastError, NotFound
from holdfast.model.observation import Status
from holdfast.model.run import Run, RunState
from tests.chains.counter import Counter, counter
from tests.chains.desk import Office, office
from tests.chains.guessing import INPUT, Guesser, choice
from tests.chains.test_rest import fits, still
from tests.chains.world import Killed, do, shopping
from tests.polling import FELT_S, pause
from tests.requirements import requirement

SERVED = {
    "chain": "served",
    "saga": True,
    "input": INPUT,
    "steps": [do("reserve"), choice(), do("ship")],
    "output": {"ship": "=ship.id"},
}
NAMED = {"chain": "served", "input": {"item": "tea"}, "key": "k-1"}


@pytest.fixture(params=["memory", "sqlite"])
async def here(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Counter, Guesser]]:
    guesser = Guesser()
    async with counter(request.param, tmp_path, SERVED, tools=guesser.shop) as opened:
        yield opened, guesser


async def over(here: Counter, run_id: str) -> dict[str, Any]:
    async with asyncio.timeout(FELT_S):
        while True:
            run = await still(here, run_id, "olga")
            if run["state"] in ("COMPLETED", "ABORTED", "COMPENSATED"):
                return run
            await pause()


@requirement("CHN-2")
@pytest.mark.parametrize(
    ("answer", "did"),
    [
        ({"choice": "charge", "confidence": 0.8}, ["reserve", "charge", "ship"]),
        ({"choice": "pack", "confidence": 1}, ["reserve", "pack", "ship"]),
    ],
)
async def test_a_tool_that_is_sure_enough_says_which_way_and_is_asked_once(
    answer: Any, did: list[str]
) -> None:
    guesser = Guesser()
    guesser.answer = answer
    async with office(guesser.tool()) as here:
        run = await here.run(do("reserve"), choice(), do("ship"))
        assert (run.state, here.world.did) == (RunState.COMPLETED, did), run.waits_for
        assert guesser.asked == 1


@requirement("CHN-2")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"choice": "charge", "confidence": 0.79}, "said 'charge', and is 0.79 sure, less than 0.8"),
        ({"choice": "charge"}, "said 'charge', and not how sure it is"),
        ({"choice": "charge", "confidence": True}, "and not how sure it is"),
        ({"choice": "charge", "confidence": 95}, "and not how sure it is"),
        ({"choice": "charge", "confidence": "0.9"}, "and not how sure it is"),
        ({"choice": "burn it", "confidence": 1.0}, "named none of these"),
        ({"choice": ["charge"], "confidence": 1.0}, "named none of these"),
        ("charge", "named none of these"),
    ],
)
async def test_one_that_is_not_sure_leaves_it_to_a_person_and_its_own_words_lead_nowhere(
    answer: Any, told: str
) -> None:
    guesser = Guesser()
    guesser.answer = answer
    async with office(guesser.tool()) as here:
        run = await here.run(do("reserve"), choice(), do("ship"))
        assert run.stuck
        assert told in run.waits_for
        assert "burn it" not in run.waits_for
        assert f"holdfast chain choose {run.id} guess CASE" in run.waits_for
        assert here.world.did == ["reserve"]
        await here.gateway.chains.resume(here.ola, run.id)
        again = await here.waited(here.ola, run.id)
        assert (again.stuck, guesser.asked) == (True, 1)  # what it said stays said


@requirement("CHN-2", "CHN-4")
@pytest.mark.parametrize("path", ["length(sure)", "max(many)", "ceil(many[0])", "many[::0]"])
async def test_an_answer_that_a_path_cannot_look_into_is_no_confidence(path: str) -> None:
    guesser = Guesser()
    guesser.answer = {"choice": "charge", "sure": 1, "many": ["1", 2]}
    async with office(guesser.tool()) as here:
        run = await here.run(choice(confidence=path))
        assert run.chooses
        assert "and not how sure it is" in run.waits_for


@requirement("CHN-4", "SAG-1")
@pytest.mark.parametrize("path", ["keys(guess.sure) | [0]", "join(', ', guess.many)", "sort(guess.many)"])
async def test_a_binding_that_cannot_look_into_an_answer_fails_its_step_and_not_the_driving(
    path: str,
) -> None:
    guesser = Guesser()
    guesser.answer = {"sure": 1, "many": ["1", 2]}
    ask = {"id": "guess", "tool": "shop.guess", "with": {"item": "=input.item"}}
    async with office(guesser.tool()) as here:
        run = await here.run(do("reserve"), ask, do("charge", **{"with": {"item": f"={path}"}}))
        assert (run.state, here.world.did) == (RunState.COMPENSATED, ["reserve", "unreserve"])
        assert run.why.endswith("leads to something of another kind")


async def unsure(here: Office, guesser: Guesser, *more: dict[str, Any]) -> Run:
    guesser.answer = {"choice": "charge", "confidence": 0.3}
    return await here.run(do("reserve"), choice(), do("ship"), *more)


@requirement("CHN-2", "CHN-7")
async def test_a_person_chooses_another_way_than_was_guessed_and_the_run_goes_on_with_it() -> None:
    guesser = Guesser()
    async with office(guesser.tool()) as here:
        run = await unsure(here, guesser)
        with pytest.raises(NotFound, match="there are 'charge', 'pack'"):
            await here.gateway.chains.choices.choose(here.ola, run.id, "guess", "burn it")
        with pytest.raises(HoldfastError, match="waits for no choice at 'ship', but at 'guess'"):
            await here.gateway.chains.choices.choose(here.ola, run.id, "ship", "pack")
        await here.gateway.chains.choices.choose(here.ola, run.id, "guess", "pack")
        ended = await here.waited(here.ola, run.id)
        assert (ended.state, here.world.did) == (RunState.COMPLETED, ["reserve", "pack", "ship"])
        with pytest.raises(HoldfastError, match="waits for no choice"):
            await here.gateway.chains.choices.choose(here.ola, run.id, "guess", "charge")
        lines = (await here.gateway.chains.look(here.ola, run.id)).lines
        assert [(one.name, one.message) for one in lines if one.name.endswith("~choice")] == [
            ("guess~choice", "'pack', as 'ola' chose")
        ]


@requirement("CHN-2")
async def test_the_person_for_whom_it_runs_chooses_and_their_agent_does_not(
    here: tuple[Counter, Guesser],
) -> None:
    shop, guesser = here
    guesser.answer = {"choice": "charge", "confidence": 0.1}
    run = await still(shop, (await shop.client("ada").post("/v1/runs", NAMED)).json()["id"])
    agent = shop.caller("ada")
    with pytest.raises(Forbidden, match="a person chooses: an operator, or 'ada' at a terminal"):
        await shop.gateway.chains.choices.choose(agent, run["id"], "guess", "pack")
    with pytest.raises(NotFound):
        await shop.gateway.chains.choices.choose(shop.caller("bob"), run["id"], "guess", "pack")
    ada = shop.gateway.identity.at_terminal("ada")
    await shop.gateway.chains.choices.choose(ada, run["id"], "guess", "pack")
    assert (await over(shop, run["id"]))["state"] == "COMPLETED"
    assert shop.world.did == ["reserve", "pack", "ship"]


@requirement("CHN-2", "AUT-2")
async def test_a_person_looks_at_what_their_agents_run_and_chooses_there_and_nobody_else_does(
    here: tuple[Counter, Guesser],
) -> None:
    shop, guesser = here
    guesser.answer = {"choice": "charge", "confidence": 0.1}
    bot = shop.gateway.identity.authenticate({"x-holdfast-user": "ada", "x-holdfast-agent": "bot"})
    chains, ada = shop.gateway.chains, shop.gateway.identity.at_terminal("ada")
    assert bot.id != ada.id
    begun = await chains.start(bot, chains.named("served"), {"item": "tea"}, "k-1")
    run = await chains.wait(bot, begun.id, FELT_S)
    with pytest.raises(Forbidden):
        await chains.choices.choose(bot, run.id, "guess", "pack")
    bob = shop.gateway.identity.at_terminal("bob")
    for stranger in (bob, shop.caller("bob")):
        with pytest.raises(NotFound):
            await chains.look(stranger, run.id)
        with pytest.raises(NotFound):
            await chains.choices.choose(stranger, run.id, "guess", "pack")
    assert (await chains.look(ada, run.id)).run.stuck
    taken = await chains.choices.choose(ada, run.id, "guess", "pack")
    assert (await chains.wait(ada, run.id, FELT_S, taken.round)).state is RunState.COMPLETED


@requirement("CHN-2", "NAM-3")
async def test_an_operator_chooses_over_http_and_that_is_on_record(here: tuple[Counter, Guesser]) -> None:
    shop, guesser = here
    guesser.answer = {"choice": "charge", "confidence": 0.1}
    run = await still(shop, (await shop.client("ada").post("/v1/runs", NAMED)).json()["id"])
    [asked] = run["choices"]
    assert (asked["step"], asked["cases"], asked["said"]) == ("guess", ["charge", "pack"], "charge")
    assert (asked["confidence"], asked["threshold"]) == (0.1, 0.8)
    path = f"/v1/runs/{run['id']}/choose"
    assert (await shop.client("olga").post(path, {"step": "guess"})).status == 400
    assert (await shop.client("olga").post(path, {"step": "guess", "case": "burn"})).status == 404
    assert (await shop.client("ada").post(path, {"step": "guess", "case": "pack"})).status == 403
    done = await shop.client("olga").post(path, {"step": "guess", "case": "pack"})
    assert (done.status, fits("RunShown", done.json())["choices"]) == (202, [])
    assert (await over(shop, run["id"]))["output"] == {"ship": "ship-tea"}
    assert (await shop.client("olga").post(path, {"step": "guess", "case": "pack"})).status == 409
    assert shop.world.did == ["reserve", "pack", "ship"]


@requirement("CHN-2", "CHN-6")
async def test_the_call_of_a_chain_says_that_somebody_must_choose_and_is_settled_afterwards(
    here: tuple[Counter, Guesser],
) -> None:
    shop, guesser = here
    guesser.answer = {"choice": "charge", "confidence": 0.1}
    seen = await shop.call("chains.served", key="k-1")
    assert "a choice between 'charge', 'pack'" in (seen.message or "")
    olga = shop.caller("olga")
    [run] = await shop.gateway.chains.list(olga)
    await shop.gateway.chains.choices.choose(olga, run.id, "guess", "charge")
    await shop.settled("served")
    again = await shop.call("chains.served", key="k-1")
    assert (again.status, again.data) == (Status.DONE, {"ship": "ship-tea"})


@requirement("CHN-2", "TEL-3")
async def test_a_run_that_waits_for_a_choice_is_told_until_it_is_made() -> None:
    guesser = Guesser()
    async with office(guesser.tool()) as here:
        run = await unsure(here, guesser)
        [alert] = [one for one in await here.wrong() if one.kind == "run_waits"]
        assert "waits for somebody to choose its way" in alert.text
        await here.gateway.chains.choices.choose(here.ola, run.id, "guess", "charge")
        await here.waited(here.ola, run.id)
        assert not [one for one in await here.wrong() if one.kind == "run_waits"]


@requirement("CHN-2")
async def test_what_is_done_otherwise_takes_the_place_of_a_person() -> None:
    guesser = Guesser()
    guesser.answer = {"choice": "charge", "confidence": 0.3}
    async with office(guesser.tool()) as here:
        run = await here.run(do("reserve"), choice(otherwise=[do("bill")], threshold=0.5))
        assert (run.state, here.world.did) == (RunState.COMPLETED, ["reserve", "bill"])


@requirement("CHN-2", "CHN-5")
@pytest.mark.parametrize(
    ("failure", "state", "did"),
    [
        ("compensate", RunState.COMPENSATED, ["reserve", "unreserve"]),
        ("continue", RunState.RUNNING, ["reserve"]),
    ],
)
async def test_a_tool_that_cannot_be_asked_ends_the_run_or_leaves_it_to_a_person(
    failure: str, state: RunState, did: list[str]
) -> None:
    guesser = Guesser()
    guesser.answer = None
    async with office(guesser.tool()) as here:
        wanted = choice()
        wanted["branch"]["ask"]["failure"] = failure
        run = await here.run(do("reserve"), wanted)
        assert (run.state, here.world.did) == (state, did), run.waits_for
        if state is RunState.RUNNING:
            await here.gateway.chains.choices.choose(here.ola, run.id, "guess", "pack")
            assert (await here.waited(here.ola, run.id)).state is RunState.COMPLETED


@requirement("CHN-2")
async def test_a_run_that_waits_for_a_choice_is_cancelled_and_taken_back() -> None:
    guesser = Guesser()
    async with office(guesser.tool()) as here:
        run = await unsure(here, guesser)
        assert await here.gateway.chains.cancel(here.ada, run.id)
        ended = await here.waited(here.ola, run.id)
        assert (ended.state, here.world.standing) == (RunState.COMPENSATED, [])


@requirement("CHN-2")
async def test_choices_in_a_loop_and_side_by_side_are_made_one_by_one() -> None:
    guesser = Guesser()
    guesser.answer = {"choice": "charge", "confidence": 0.3}
    async with office(guesser.tool()) as here:
        other = choice(cases={"ship": [do("ship")], "bill": [do("bill")]})
        other["branch"]["ask"] = {**other["branch"]["ask"], "id": "other"}
        loop = {"repeat": 2, "do": [other]}
        run = await here.run({"parallel": [[choice()], [loop]]})
        choices = here.gateway.chains.choices
        for step, case in (("other#1", "ship"), ("guess", "pack"), ("other#2", "bill")):
            await choices.choose(here.ola, run.id, step, case)
            run = await here.waited(here.ola, run.id)
        assert run.state is RunState.COMPLETED, run.waits_for
        assert sorted(here.world.did) == ["bill", "pack", "ship"]
        assert guesser.asked == 3


@requirement("CHN-2", "CHN-7")
@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("after", [False, True])
async def test_a_run_killed_around_a_choice_goes_the_same_way_and_acts_once(at: int, after: bool) -> None:
    guesser = Guesser()
    async with shopping(guesser.tool()) as here:
        run = await here.begin(do("reserve"), choice(), do("ship"))
        run.at, run.after = at, after
        with pytest.raises(Killed):
            await here.drive(run)
        run.at = None
        written = {line.name for line in await run.lines()}
        guesser.answer = {"choice": "pack", "confidence": 1.0}  # a model need not say the same twice
        assert await here.drive(run) is RunState.COMPLETED
        way = "charge" if "guess" in written else "pack"
        assert here.world.did == ["reserve", way, "ship"]


@requirement("CHN-2", "CHN-3")
async def test_a_choice_in_a_join_of_a_join_is_told_before_the_approvals_beside_it() -> None:
    guesser = Guesser()
    guesser.answer = {"choice": "charge", "confidence": 0.1}
    async with office(guesser.tool(), signing()) as here:
        inner = {"parallel": [[do("sign", id="second")], [choice()]]}
        run = await here.run({"parallel": [[do("sign", id="first")], [inner]]}, saga=False)
        assert run.chooses, run.waits_for
        assert [alert.subject for alert in await here.wrong()] == [run.id]


def signing() -> Any:
    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        floor=Floor.OPERATOR,
        scopes=["shop:write"],
        manifest=[("signature", "CREATE", "one")],
        idempotency="none",
    )
    async def sign(item: str) -> str:
        """Sign for something.

        Args:
            item: what for
        """
        return item

    return sign
