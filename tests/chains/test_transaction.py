"""What stands in a transaction is done as a whole or not at all, on every store."""

from pathlib import Path
from typing import Literal

import pytest
import yaml

from holdfast.chains.reading import read
from holdfast.model.errors import Code, ConfigError, HoldfastError, NoEffect
from holdfast.model.observation import Status
from holdfast.model.run import RunState
from holdfast.model.upstream_session import SessionState
from tests.chains.books import INPUT, add, books, transaction
from tests.chains.ledger import proving
from tests.chains.world import Killed, do
from tests.polling import FELT_S, pause
from tests.requirements import requirement
from tests.stored import ALL


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@requirement("CHN-5", "EXE-8")
async def test_what_is_in_a_transaction_counts_once_all_of_it_is_done(kind: str, tmp_path: Path) -> None:
    total = {"id": "total", "tool": "till.total"}
    async with books(kind, tmp_path) as here:
        node = transaction(add("tea", 3), total, add("milk", 4))
        run = await here.run(do("reserve"), node, do("ship"), output={"total": "=total.total"})
        assert (run.state, run.output) == (RunState.COMPLETED, {"total": 3}), run.why
        assert (here.till.entries, here.till.open) == ({"tea": 3, "milk": 4}, {})
        assert here.world.did == ["reserve", "ship"]
        lines = (await here.look(run)).lines
        assert [line.name for line in lines] == [
            *("reserve", "book", "tea", "total", "milk"),
            *("book~commit", "ship"),
        ]


@requirement("CHN-5", "SAG-1")
@pytest.mark.parametrize("at", ["begin", "add", "commit"])
async def test_a_failure_in_it_rolls_all_of_it_back_and_undoes_what_came_before(
    at: str, kind: str, tmp_path: Path
) -> None:
    async with books(kind, tmp_path) as here:
        where = at if at == "begin" else f"before {at}"
        here.till.breaks[where] = NoEffect("the drawer is stuck", Code.DEPENDENCY_UNAVAILABLE)
        run = await here.run(do("reserve"), transaction(add("tea"), add("milk")), do("ship"))
        assert run.state is RunState.COMPENSATED, run.waits_for
        assert "the drawer is stuck" in run.why
        assert here.till.entries == {}
        assert here.till.open == {} or at == "begin"
        assert here.world.did == ["reserve", "unreserve"]
        assert here.asked("remove") == 0  # what never counted is not taken back
        assert here.asked("rollback") == (0 if at == "begin" else 1)


@requirement("CHN-5", "SAG-1")
async def test_what_was_committed_is_taken_back_step_by_step_when_something_fails_later(
    kind: str, tmp_path: Path
) -> None:
    async with books(kind, tmp_path) as here:
        here.world.failing["ship"] = 1
        run = await here.run(do("reserve"), transaction(add("tea"), add("milk")), do("ship"))
        assert run.state is RunState.COMPENSATED, run.waits_for
        assert here.till.entries == {}
        assert [name for tool, name in here.till.heard if tool == "remove"] == ["milk", "tea"]
        assert here.world.standing == []


@requirement("CHN-5", "SAG-1", "IDM-5")
async def test_what_a_saga_has_taken_back_is_not_taken_back_again_with_its_session(
    kind: str, tmp_path: Path
) -> None:
    async with books(kind, tmp_path) as here:
        here.world.failing["ship"] = 1
        run = await here.run(do("reserve"), transaction(add("tea"), add("milk")), do("ship"))
        assert run.state is RunState.COMPENSATED, run.waits_for
        [session] = await here.gateway.upstream_sessions.list(here.olga)
        undone, steps = await here.driven(here.gateway.upstream_sessions.undo(here.olga, session.id))
        assert (undone.state, list(steps)) == (SessionState.UNDONE, [])
        assert [name for tool, name in here.till.heard if tool == "remove"] == ["milk", "tea"]
        lines = (await here.gateway.upstream_sessions.look(here.olga, session.id)).lines
        told = [await here.gateway.find(here.olga, line.call_id) for line in lines]
        assert [one is not None and "taken back by call" in (one.message or "") for one in told] == [
            True,
            True,
        ]


@requirement("CHN-5")
async def test_without_a_saga_what_was_rolled_back_is_not_told_as_done(kind: str, tmp_path: Path) -> None:
    async with books(kind, tmp_path) as here:
        node = transaction(add("tea"), add("milk", amount=2))
        here.till.says["add"] = lambda handle: {
            "tx": handle,
            "entry": "tea",
            "amount": 1,
        }  # of the second too
        run = await here.run(do("reserve"), node, saga=False)
        assert run.state is RunState.ABORTED, run.waits_for
        assert sorted(run.output["completed"]) == ["reserve"]
        assert sorted(run.output["failed"]) == ["milk"]
        assert (here.till.entries, here.till.open) == ({}, {})


@requirement("CHN-5", "CHN-6")
async def test_the_call_of_such_a_chain_says_that_nothing_is_left(tmp_path: Path) -> None:
    steps = [transaction(add("tea"), add("milk"))]
    (tmp_path / "chains").mkdir()
    (tmp_path / "chains" / "pay.yaml").write_text(yaml.safe_dump({"chain": "pay", "steps": steps}))
    async with books("sqlite", tmp_path, chains=str(tmp_path / "chains")) as here:
        tool = next(one for one in here.gateway.tools(here.ada) if one.tool.contract.tool == "chains.pay")
        assert tool.tool.contract.effect.writes
        here.till.breaks["before commit"] = NoEffect("the drawer is stuck")
        seen = await here.driven(here.gateway.call("chains.pay", {}, principal=here.ada, key="k-1"))
        assert seen.status is Status.FAILED
        assert "nothing of it is left" in (seen.message or "")
        assert seen.steps == {"completed": [], "failed": []}
        here.till.breaks.clear()
        done = await here.driven(here.gateway.call("chains.pay", {}, principal=here.ada, key="k-2"))
        assert done.status is Status.DONE, done
        assert done.steps == {"completed": ["book", "tea", "milk"], "failed": []}
        assert here.till.entries == {"tea": 1, "milk": 1}


@requirement("CHN-5")
async def test_a_run_that_is_stopped_in_a_transaction_leaves_nothing(tmp_path: Path) -> None:
    async with books("sqlite", tmp_path) as here:
        guess = {"ask": {"id": "sum", "tool": "till.total"}, "cases": {"more": [add("milk")]}}
        run = await here.run(do("reserve"), transaction(add("tea"), {"branch": guess}))
        assert run.chooses, run.waits_for
        assert len(here.till.open) == 1
        assert await here.gateway.chains.cancel(here.ada, run.id)
        ended = await here.waited(run.id, beyond=run.round)
        assert (ended.state, here.till.open, here.till.entries) == (RunState.COMPENSATED, {}, {})
        assert here.world.standing == []


@requirement("CHN-5", "CHN-7")
async def test_a_session_that_idled_out_while_the_run_waited_fails_and_undoes(tmp_path: Path) -> None:
    async with books("sqlite", tmp_path) as here:
        guess = {"ask": {"id": "sum", "tool": "till.total"}, "cases": {"more": [add("milk")]}}
        run = await here.run(do("reserve"), transaction(add("tea"), {"branch": guess}))
        await here.clock.advance(301)
        await here.driven(here.gateway.tidy())
        assert here.till.open == {}
        await here.gateway.chains.choices.choose(here.olga, run.id, "sum", "more")
        ended = await here.waited(run.id)
        assert ended.state is RunState.COMPENSATED, ended.waits_for
        assert "was rolled back" in ended.why
        assert (here.till.entries, here.world.standing) == ({}, [])


@requirement("CHN-5", "CHN-7")
@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(6))
async def test_a_run_killed_anywhere_in_a_transaction_has_all_of_it_or_nothing(
    at: int, after: bool, failing: bool, tmp_path: Path
) -> None:
    async with books("memory", tmp_path) as here:
        if failing:
            here.till.breaks["before commit"] = NoEffect("the drawer is stuck")
        node = transaction(add("tea"), add("milk"))
        run = await here.shop.begin(do("reserve"), node, do("ship"), saga=True)
        run.at, run.after = at, after
        with pytest.raises(Killed):
            await here.shop.drive(run)
        run.at = None
        state = await here.shop.drive(run)
        assert state is (RunState.COMPENSATED if failing else RunState.COMPLETED), run.run.waits_for
        assert here.till.entries == ({} if failing else {"tea": 1, "milk": 1})
        assert (here.till.open, here.world.standing) == ({}, [] if failing else ["reserve", "ship"])
        assert (here.asked("add"), here.handles("add")) == (2, ["transaction-1"])


@requirement("CHN-3", "CHN-5")
async def test_a_branch_that_is_not_needed_leaves_no_transaction_open(tmp_path: Path) -> None:
    async with books("memory", tmp_path) as here:
        guess = {"ask": {"id": "sum", "tool": "till.total"}, "cases": {"more": [add("milk")]}}
        slow = [transaction(add("tea"), {"branch": guess})]
        run = await here.run({"parallel": [slow, [do("ship")]], "join": "first"})
        assert run.state is RunState.COMPLETED, run.waits_for
        assert (here.till.entries, here.till.open) == ({}, {})


@requirement("CHN-5", "EXE-8", "SAG-1")
async def test_what_a_person_has_taken_back_in_the_session_is_not_taken_back_again(
    kind: str, tmp_path: Path
) -> None:
    async with books(kind, tmp_path) as here:
        guess = {"ask": do("look"), "cases": {"more": [do("ship")]}}
        run = await here.run(do("reserve"), transaction(add("tea"), add("milk")), {"branch": guess})
        assert run.chooses, run.waits_for
        [session] = await here.gateway.upstream_sessions.list(here.olga)
        await here.driven(here.gateway.upstream_sessions.undo(here.olga, session.id))
        assert (here.asked("remove"), here.till.entries) == (2, {})
        assert await here.gateway.chains.cancel(here.ada, run.id)
        ended = await here.waited(run.id, beyond=run.round)
        assert (ended.state, here.asked("remove")) == (RunState.COMPENSATED, 2), ended.waits_for
        assert "reserve" not in here.world.standing
        lines = {line.name: line.message for line in (await here.look(run)).lines}
        assert (lines["tea~undo"], lines["milk~undo"]) == ("by somebody else", "by somebody else")


@requirement("CHN-5", "SAG-3")
async def test_a_person_is_not_told_to_resume_what_was_rolled_back_for_good(tmp_path: Path) -> None:
    async with books("memory", tmp_path) as here:
        here.till.breaks["before add"] = NoEffect("the drawer is stuck", Code.DEPENDENCY_UNAVAILABLE)
        node = transaction(add("tea", failure="compensate"))
        run = await here.run(do("tell"), node, saga=False)
        assert run.stuck
        assert run.waits_for.endswith("the drawer is stuck; abandon the run")
        await here.gateway.chains.abandon(here.olga, run.id, "told the customer")
        assert (await here.waited(run.id)).state is RunState.ABORTED


@requirement("CHN-3", "CHN-5")
async def test_a_branch_that_was_given_up_before_its_commit_is_rolled_back_and_not_committed(
    tmp_path: Path,
) -> None:
    async with books("memory", tmp_path) as here:

        async def until_shipped() -> None:
            while "ship" not in here.world.did:
                await pause()

        here.till.slowly = until_shipped
        run = await here.run({"parallel": [[transaction(add("tea"))], [do("ship")]], "join": "first"})
        assert run.state is RunState.COMPLETED, run.waits_for
        assert (here.till.entries, here.till.open) == ({}, {})
        assert (here.asked("add"), here.asked("commit"), here.asked("rollback")) == (1, 0, 1)


@requirement("CHN-5")
async def test_a_run_that_is_stopped_while_its_last_step_is_done_does_not_commit(
    kind: str, tmp_path: Path
) -> None:
    async with books(kind, tmp_path) as here:

        async def cancelled() -> None:
            [run] = await here.gateway.chains.list(here.ada)
            assert await here.gateway.chains.cancel(here.ada, run.id)

        here.till.slowly = cancelled
        run = await here.run(transaction(add("tea")), do("ship"), saga=False)
        assert (run.state, run.why) == (RunState.ABORTED, "stopped by ada")
        assert run.output == {"completed": {}, "failed": {}}
        assert (here.till.entries, here.till.open) == ({}, {})
        assert (here.asked("commit"), here.world.did) == (0, [])


@requirement("CHN-5")
async def test_transactions_in_a_loop_are_each_one_of_their_own(tmp_path: Path) -> None:
    async with books("memory", tmp_path) as here:
        twice = {"repeat": 2, "do": [transaction({"repeat": 2, "do": [add("milk")]})]}
        here.world.failing["ship"] = 1
        run = await here.run(twice, do("ship"))
        assert run.state is RunState.COMPENSATED, run.waits_for
        assert here.handles("commit") == ["transaction-1", "transaction-2"]
        assert (here.asked("commit"), here.asked("add")) == (2, 4)
        assert here.asked("remove") == 4


@requirement("CHN-4", "CHN-5")
async def test_the_answer_of_a_loop_of_transactions_is_that_of_its_last_step(tmp_path: Path) -> None:
    async with books("memory", tmp_path) as here:
        run = await here.run(
            {"repeat": 2, "do": [transaction(add("tea"), {"id": "sum", "tool": "till.total"})]}
        )
        assert (run.state, run.output) == (RunState.COMPLETED, {"total": 1}), run.why


@requirement("CHN-5", "CHN-7")
@pytest.mark.parametrize(
    ("found", "state", "entries"),
    [
        ("committed", RunState.COMPLETED, {"tea": 1}),
        ("no-effect", RunState.COMPENSATED, {}),
    ],
)
async def test_a_commit_that_got_lost_is_waited_for_until_somebody_knows(
    found: Literal["committed", "no-effect"],
    state: RunState,
    entries: dict[str, int],
    kind: str,
    tmp_path: Path,
) -> None:
    async with books(kind, tmp_path) as here:
        lost = RuntimeError("lost on the way")
        here.till.breaks["commit" if found == "committed" else "before commit"] = lost
        run = await here.run(do("reserve"), transaction(add("tea")), do("ship"))
        assert run.waits_for.startswith("the outcome of call"), run.waits_for
        assert (here.asked("rollback"), here.world.did) == (0, ["reserve"])
        here.till.breaks.clear()
        here.till.breaks["before commit"] = NoEffect("not now")
        await here.gateway.settle(here.olga, run.waits_on, found, note="looked at the till")
        await here.driven(here.gateway.tidy())
        ended = await here.waited(run.id, beyond=run.round)
        assert (ended.state, here.till.entries, here.till.open) == (state, entries, {}), ended.waits_for
        assert here.world.standing == (["reserve", "ship"] if entries else [])


@requirement("CHN-5", "SAG-3")
async def test_a_session_that_cannot_be_rolled_back_waits_for_a_person_and_goes_on_from_there(
    tmp_path: Path,
) -> None:
    async with books("sqlite", tmp_path) as here:
        here.till.breaks["before rollback"] = NoEffect("the drawer is stuck")
        here.till.breaks["before commit"] = NoEffect("and locked")
        run = await here.run(do("reserve"), transaction(add("tea")), do("ship"))
        assert run.stuck
        assert "transaction 'book' is not rolled back yet" in run.waits_for
        assert "and locked" in run.waits_for
        assert here.world.did == ["reserve"]  # nothing is taken back while it is not known what counts
        here.till.breaks.clear()
        await here.gateway.chains.resume(here.olga, run.id)
        ended = await here.waited(run.id, beyond=run.round)
        assert ended.state is RunState.COMPENSATED, ended.waits_for
        assert "and locked" in ended.why
        assert (here.till.entries, here.till.open, here.world.standing) == ({}, {}, [])


@requirement("CHN-5")
async def test_what_somebody_else_committed_counts_and_is_taken_back(tmp_path: Path) -> None:
    async with books("memory", tmp_path) as here:
        guess = {"ask": {"id": "sum", "tool": "till.total"}, "cases": {"more": [add("milk")]}}
        run = await here.run(do("reserve"), transaction(add("tea"), {"branch": guess}))
        [session] = await here.gateway.upstream_sessions.list(here.olga)
        done = await here.gateway.call("till.commit", {"tx": session.id}, principal=here.ada, key="mine")
        assert done.status is Status.DONE
        await here.gateway.chains.choices.choose(here.olga, run.id, "sum", "more")
        ended = await here.waited(run.id)
        assert ended.state is RunState.COMPENSATED, ended.waits_for
        assert (here.till.entries, here.asked("remove"), here.world.standing) == ({}, 1, [])


@requirement("EXE-4", "EXE-8")
async def test_no_other_tool_stands_in_for_one_that_works_in_a_session(tmp_path: Path) -> None:
    said = {"entry": {"tools": ["till.add", "shop.reserve"]}}
    with pytest.raises(ConfigError, match=r"'till\.add' works in a session of its upstream"):
        async with books("memory", tmp_path, fallbacks=said):
            pass


@requirement("CHN-5", "SAG-4")
async def test_an_undoing_in_a_transaction_is_not_tried_and_an_operator_accepts_it(tmp_path: Path) -> None:
    named = {"functions": "tests.chains.books:real", "twin": {"functions": "tests.chains.books:twin"}}
    chain = read({"chain": "order", "saga": True, "input": INPUT, "steps": [transaction(add("tea"))]})
    async with proving(tmp_path, upstreams={"till": named}) as gateway:
        ada, ola = (gateway.identity.at_terminal(name) for name in ("ada", "ola"))
        with pytest.raises(HoldfastError, match=r"'till\.remove' takes step 'tea'"):
            await gateway.chains.start(ada, chain, {"item": "tea"}, "k-1")
        report = await gateway.chains.inversions.prove(ola, chain, {"item": "tea"})
        assert [(one.how, one.text) for one in report.tried] == [
            (None, "it is done in a transaction, where nothing can be taken back by itself")
        ]
        await gateway.chains.inversions.accept(ola, chain, "tried by hand")
        run = await gateway.chains.start(ada, chain, {"item": "tea"}, "k-1")
        assert (await gateway.chains.wait(ada, run.id, FELT_S)).state is RunState.COMPLETED
