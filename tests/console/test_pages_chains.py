"""*Chains*: is a run shown as it stands, with its graph, and can operators go on with it or end it?"""

from pathlib import Path
from typing import Any

from holdfast import Effect, Floor, NoEffect, Undo, tool
from holdfast.chains.reading import read
from holdfast.model.run import RunState
from holdfast.servers.app import build
from holdfast.servers.console.graph import graph
from tests.chains.books import add, books, transaction
from tests.chains.desk import Office, office
from tests.chains.guessing import Guesser, choice
from tests.chains.world import do
from tests.console.asking import Page
from tests.console.office import HOSTILE, cells, harmless
from tests.console.visitor import Visitor, text
from tests.requirements import requirement
from tests.servers.asgi import Answer


async def browser(here: Office, name: str) -> Visitor:
    visitor = Visitor(build(here.gateway))
    await visitor.sign_in(name)
    return visitor


def boxes(answer: Answer) -> list[str]:
    """The states that the graph shows, in its order."""
    said = [one.get("class", "") for one in Page(answer).all("rect")]
    return [one for one in said if one.startswith(("box", "undo"))]


@requirement("PPL-4", "CHN-5")
async def test_a_run_that_was_done_shows_its_steps_its_calls_and_its_answer() -> None:
    async with office() as here:
        run = await here.run(do("reserve"), do("charge"))
        ada = await browser(here, "ada")
        listed = await ada.get("/chains")
        assert harmless(listed)
        assert cells(listed, "State") == ["completed"]
        page = await ada.get(f"/chains/{run.id}")
        assert harmless(page)
        assert "It was done, all of it" in text(page)
        assert boxes(page) == ["box done", "box done"]
        assert cells(page, "Step") == ["reserve", "charge"]
        assert cells(page, "State") == ["done", "done"]
        assert all(call.startswith("call_") for call in cells(page, "Call"))
        assert "charge-tea" in text(page)
        assert "hx-sse:connect" not in page.body.decode()  # it is over: nothing more will come
        call = cells(page, "Call")[0]
        assert (await ada.get(f"/calls/{call}")).status == 200


@requirement("SAG-3", "SAG-1")
async def test_a_run_that_could_not_be_taken_back_is_resumed_by_an_operator_with_the_journal() -> None:
    async with office() as here:
        here.world.failing["pack"] = here.world.failing["unreserve"] = 100
        run = await here.run(do("reserve"), do("charge"), do("pack"))
        assert run.state is RunState.COMPENSATION_FAILED
        ola, ada = await browser(here, "ola"), await browser(here, "ada")
        page = await ola.get(f"/chains/{run.id}")
        assert harmless(page)
        assert "It waits for a person" in text(page)
        assert "Step pack failed with DEPENDENCY_UNAVAILABLE" in text(page)
        assert boxes(page) == ["box done", "undo failed", "box done", "undo undone", "box failed"]
        assert cells(page, "State")[-1] == "taken back"
        assert f'hx-sse:connect="/chains/{run.id}/events?mark=' in page.body.decode()
        assert "Resume" not in text(await ada.get(f"/chains/{run.id}"))
        assert (await ada.post(f"/chains/{run.id}/resume")).status == 403
        assert (await ola.post(f"/chains/{run.id}/resume", {"csrf": "other"})).status == 403
        here.world.failing.clear()
        done = await ola.post(f"/chains/{run.id}/resume")
        assert done.headers["location"] == f"/chains/{run.id}?done=resumed"
        await here.waited(here.ola, run.id)
        page = await ola.get(f"/chains/{run.id}")
        assert "It could not be done, and was taken back" in text(page)
        assert boxes(page) == ["box done", "undo undone", "box done", "undo undone", "box failed"]
        assert [one for one in Page(page).all("path") if one["class"] == "back"]
        assert here.world.standing == []


@requirement("PPL-4", "CHN-5")
async def test_a_step_that_failed_leads_to_its_call() -> None:
    async with office() as here:
        here.world.failing["charge"] = 100
        run = await here.run(do("reserve"), do("charge"), saga=False)
        ada = await browser(here, "ada")
        page = await ada.get(f"/chains/{run.id}")
        assert harmless(page)
        assert cells(page, "Tool") == ["shop.reserve", "shop.charge"]
        call = cells(page, "Call")[1]
        assert page.body.decode().count(f'href="/calls/{call}"') == 2  # in the journal, and where it is told
        assert "shop.charge" in text(await ada.get(f"/calls/{call}"))


@requirement("PPL-4", "CHN-3")
async def test_branches_that_failed_are_told_each_and_lead_to_their_calls() -> None:
    async with office() as here:
        here.world.failing.update({"reserve": 100, "charge": 100})
        run = await here.run({"parallel": [do("reserve"), do("charge")], "join": "first"}, saga=False)
        ada = await browser(here, "ada")
        page = await ada.get(f"/chains/{run.id}")
        assert harmless(page)
        assert boxes(page) == ["box failed", "box failed"]
        assert cells(page, "Tool") == ["shop.reserve", "shop.charge"]
        assert all(call.startswith("call_") for call in cells(page, "Call"))
        for name in ("reserve", "charge"):
            assert f"step '{name}': {name} is away" in text(page)


@requirement("SAG-3")
async def test_an_operator_abandons_a_run_with_a_note_and_a_run_that_is_over_is_not_cancelled() -> None:
    async with office() as here:
        here.world.failing["charge"] = 100
        run = await here.run(do("reserve"), do("tell"), do("charge", failure="compensate"), saga=False)
        ola, ada = await browser(here, "ola"), await browser(here, "ada")
        assert "It waits for a person" in text(await ola.get(f"/chains/{run.id}"))
        assert (await ola.post(f"/chains/{run.id}/abandon", {"note": " "})).status == 400
        assert (await ada.post(f"/chains/{run.id}/abandon", {"note": "enough"})).status == 403
        done = await ola.post(f"/chains/{run.id}/abandon", {"note": "told them <b>by phone</b>"})
        assert done.headers["location"] == f"/chains/{run.id}?done=abandoned"
        page = await ola.get(f"/chains/{run.id}")
        assert harmless(page)
        assert "&lt;b&gt;by phone" in page.body.decode()
        assert (await ada.post(f"/chains/{run.id}/cancel")).status == 409
        assert (await ola.get("/chains/run_nothing")).status == 404


@requirement("CHN-2", "PPL-4")
async def test_a_choice_that_no_tool_was_sure_of_is_made_by_a_button() -> None:
    guesser = Guesser()
    guesser.answer = {"choice": "pack", "confidence": 0.2, "note": HOSTILE}
    async with office(guesser.tool()) as here:
        run = await here.run(do("reserve"), choice(), do("ship"))
        ola, eve = await browser(here, "ola"), await browser(here, "eve")
        page = await ola.get(f"/chains/{run.id}")
        assert harmless(page)
        assert "It waits for your choice" in text(page)
        assert [one["value"] for one in Page(page).all("button") if one.get("name") == "case"] == [
            "charge",
            "pack",
        ]
        assert boxes(page) == ["box done", "box waiting", "box open", "box open", "box open"]
        path = f"/chains/{run.id}/choose"
        assert (await eve.post(path, {"step": "guess", "case": "pack"})).status == 404
        assert (await ola.post(path, {"step": "guess", "case": "burn"})).status == 404
        done = await ola.post(path, {"step": "guess", "case": "charge"})
        assert done.headers["location"] == f"/chains/{run.id}?done=chosen"
        await here.waited(here.ola, run.id)
        page = await ola.get(f"/chains/{run.id}")
        assert harmless(page)
        assert cells(page, "Step") == ["reserve", "guess", "guess", "charge", "ship"]
        assert "'charge', as 'ola' chose" in text(page)


@requirement("CHN-2", "CHN-3", "PPL-4")
async def test_a_run_that_waits_for_a_choice_and_for_an_approval_shows_both() -> None:
    guesser = Guesser()
    guesser.answer = {"choice": "pack", "confidence": 0.2}

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        floor=Floor.OPERATOR,
        undo=Undo.EXACT,
        scopes=["shop:write"],
        manifest=[("contract", "UPDATE", "one")],
        idempotency="none",
        compensation={"tool": "unreserve", "arguments": {"id": "=result"}},
    )
    async def sign(item: str) -> str:
        """Sign for it.

        Args:
            item: what for
        """
        return item

    async with office(guesser.tool(), sign) as here:
        run = await here.run({"parallel": [[do("sign")], [choice()]]})
        assert run.stuck  # nobody is to miss that a person is needed
        ola = await browser(here, "ola")
        page = await ola.get(f"/chains/{run.id}")
        assert harmless(page)
        links = [one.get("href", "") for one in Page(page).all("a")]
        assert [link for link in links if link.startswith("/approvals/")] == [f"/approvals/{run.waits_on}"]
        assert [one["value"] for one in Page(page).all("button") if one.get("name") == "case"] == [
            "charge",
            "pack",
        ]
        await here.gateway.decide(here.ola, run.waits_on, True)
        await here.driven(here.gateway.tidy())
        rest = await here.driven(here.gateway.chains.wait(here.ola, run.id, 600.0, run.round))
        assert (rest.stuck, rest.waits_on) == (True, "")
        await here.gateway.chains.choices.choose(here.ola, run.id, "guess", "pack")
        assert (await here.waited(here.ola, run.id)).state is RunState.COMPLETED


@requirement("CHN-5", "PPL-4")
async def test_a_transaction_that_was_rolled_back_shows_its_steps_as_not_done(tmp_path: Path) -> None:
    async with books("memory", tmp_path) as here:
        here.till.breaks["before commit"] = NoEffect("the drawer is stuck")
        run = await here.run(do("reserve"), transaction(add("tea")))
        visitor = Visitor(build(here.gateway))
        await visitor.sign_in("olga")
        page = await visitor.get(f"/chains/{run.id}")
        assert harmless(page)
        assert boxes(page) == ["box done", "undo undone", "box skipped", "box skipped"]
        assert cells(page, "Step") == ["reserve", "book", "tea", "book", "reserve"]
        assert [state.split(" ")[0] for state in cells(page, "State")] == [
            *("done", "done", "done", "rolled", "taken"),
        ]


@requirement("PPL-4", "PPL-2")
async def test_what_tools_and_callers_wrote_is_shown_as_theirs_and_leads_nowhere() -> None:
    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=Undo.EXACT,
        scopes=["shop:write"],
        manifest=[("spam", "CREATE", "one")],
        idempotency="none",
        compensation={"tool": "unreserve", "arguments": {"id": "=result"}},
    )
    async def spam(item: str) -> str:
        """Say something odd.

        Args:
            item: what about
        """
        raise NoEffect(HOSTILE)

    async with office(spam) as here:
        odd = {**do("look"), "when": "input.item != '<script>alert(3)</script>'"}
        run = await here.run(odd, do("reserve"), do("spam"), key=f"k {HOSTILE}"[:60])
        ada = await browser(here, "ada")
        for path in ("/chains", f"/chains/{run.id}"):
            page = await ada.get(path)
            assert harmless(page)
            assert "&lt;script&gt;alert(1)" in page.body.decode()
            assert "\u202e" not in page.body.decode()


@requirement("PPL-2")
async def test_nobody_sees_the_runs_of_others_but_operators() -> None:
    async with office() as here:
        run = await here.run(do("reserve"))
        begun = await here.gateway.chains.list(here.ola)
        assert [one.id for one in begun] == [run.id]
        eve = await browser(here, "eve")
        assert cells(await eve.get("/chains"), "State") == []
        assert (await eve.get(f"/chains/{run.id}")).status == 404
        assert (await eve.post(f"/chains/{run.id}/cancel")).status == 404


@requirement("PPL-4")
async def test_declared_chains_are_listed_with_what_keeps_them_from_being_run(tmp_path: Path) -> None:
    good = "chain: good\nsteps:\n  - {id: look, tool: shop.look, with: {item: tea}}\n"
    (tmp_path / "good.yaml").write_text(good)
    bad = good.replace("chain: good", "chain: bad").replace("shop.look", "shop.gone")
    (tmp_path / "bad.yaml").write_text(bad)
    async with office(chains=str(tmp_path)) as here:
        page = await (await browser(here, "ola")).get("/chains")
        assert harmless(page)
        assert "good 1.0.0 can be run" in text(page)
        assert "bad 1.0.0 cannot be run" in text(page)
        assert "steps[0].tool there is no tool 'shop.gone' here" in text(page)


def test_branches_have_lanes_of_their_own_and_what_follows_a_join_stands_after_the_longest() -> None:
    def step(name: str) -> dict[str, Any]:
        return {"id": name, "tool": f"shop.{name}"}

    chain = read(
        {
            "chain": "wide",
            "steps": [
                step("a"),
                {"parallel": [[step("b"), step("c")], step("d"), step("e")], "join": {"quorum": 0.5}},
                {"branch": [{"when": "b.x == 1", "do": step("f")}, {"otherwise": step("g")}]},
            ],
        }
    )
    drawn = graph(chain, {"b": "done"}, {}, [])
    places = {box.name: (box.column, box.lane) for box in drawn.boxes}
    assert places == {
        "a": (0, 0),
        "b": (1, 0),
        "c": (2, 0),
        "d": (1, 1),
        "e": (1, 2),
        "quorum 0.5": (3, 0),
        "which?": (4, 0),
        "f": (5, 0),
        "g": (5, 1),
    }
    assert len({(box.x, box.y) for box in drawn.boxes}) == len(drawn.boxes)
    assert [box.state for box in drawn.boxes if box.name == "b"] == ["done"]
    assert len(drawn.edges) == 3 + 1 + 3 + 1 + 2


@requirement("CHN-2", "PPL-4")
async def test_what_was_asked_in_a_loop_is_shown_as_done() -> None:
    guesser = Guesser()
    async with office(guesser.tool()) as here:
        run = await here.run({"repeat": 2, "do": [choice()]})
        assert run.state is RunState.COMPLETED, run.why
        page = await (await browser(here, "ola")).get(f"/chains/{run.id}")
        assert boxes(page) == ["box done", "box done", "box open"]


@requirement("CHN-5", "SAG-3", "PPL-4")
async def test_what_could_not_be_taken_back_is_not_looked_for_in_what_was_rolled_back(tmp_path: Path) -> None:
    async with books("memory", tmp_path) as here:
        here.till.breaks["before commit"] = NoEffect("the drawer is stuck")
        here.world.failing["unreserve"] = 100
        run = await here.run(do("reserve"), transaction(add("tea")))
        assert run.state is RunState.COMPENSATION_FAILED, run.waits_for
        visitor = Visitor(build(here.gateway))
        await visitor.sign_in("olga")
        page = await visitor.get(f"/chains/{run.id}")
        assert boxes(page) == ["box done", "undo failed", "box skipped", "box skipped"]
