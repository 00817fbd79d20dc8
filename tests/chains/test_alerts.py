"""People are told of a run that only a person can help, once, and that it is over."""

from pathlib import Path

from holdfast.model.errors import Code
from holdfast.model.observation import Status
from holdfast.model.run import RunState
from tests.chains.desk import office
from tests.chains.world import do
from tests.requirements import requirement


@requirement("SAG-3", "TEL-3")
async def test_a_failed_compensation_is_told_until_a_person_has_resumed_the_run() -> None:
    async with office() as here:
        here.world.failing["charge"] = here.world.failing["unreserve"] = 100
        stuck = await here.run(do("reserve"), do("charge"))
        assert stuck.state is RunState.COMPENSATION_FAILED
        [alert] = [one for one in await here.wrong() if one.kind == "compensation_failed"]
        assert alert.subject == stuck.id
        assert "could not take back what it did" in alert.text
        assert f"holdfast chain show {stuck.id}" in alert.text
        assert "is away" not in alert.text  # a tool's own words
        again = [one.id for one in await here.wrong() if one.kind == "compensation_failed"]
        assert again == [alert.id]
        here.world.failing.clear()
        await here.gateway.chains.resume(here.ola, stuck.id)
        assert (await here.waited(here.ola, stuck.id)).state is RunState.COMPENSATED
        assert not [one for one in await here.wrong() if one.kind == "compensation_failed"]


@requirement("SAG-3", "SAG-2")
async def test_a_run_past_its_pivot_that_cannot_go_on_is_told_until_it_is_abandoned() -> None:
    async with office() as here:
        here.world.failing["charge"] = 100
        stuck = await here.run(do("reserve"), do("tell"), do("charge", failure="compensate"), saga=False)
        assert (stuck.state, stuck.stuck) == (RunState.RUNNING, True)
        [alert] = [one for one in await here.wrong() if one.kind == "run_waits"]
        assert alert.subject == stuck.id
        await here.gateway.chains.abandon(here.ola, stuck.id, "told the customer")
        assert not [one for one in await here.wrong() if one.kind == "run_waits"]


@requirement("VAL-2", "SAG-3")
async def test_the_caller_of_a_saga_that_was_abandoned_half_undone_is_told_so_with_its_own_code(
    tmp_path: Path,
) -> None:
    steps = "".join(
        f"  - {{id: {one}, tool: shop.{one}, with: {{item: tea}}}}\n" for one in ("reserve", "charge")
    )
    (tmp_path / "order.yaml").write_text(f"chain: order\nsaga: true\nsteps:\n{steps}")
    async with office(chains=str(tmp_path)) as here:
        here.world.failing["charge"] = here.world.failing["unreserve"] = 100
        first = await here.driven(here.gateway.call("chains.order", {}, principal=here.ada, key="k-1"))
        assert first.status is not Status.DONE
        [run] = await here.gateway.chains.list(here.ola)
        await here.waited(here.ola, run.id)
        await here.gateway.chains.abandon(here.ola, run.id, "put back by hand")
        await here.gateway.tidy()
        last = await here.driven(here.gateway.call("chains.order", {}, principal=here.ada, key="k-1"))
        assert (last.status, last.code) == (Status.FAILED, Code.COMPENSATION_FAILED)
        assert "done and not taken back: reserve" in (last.message or "")
        assert here.world.standing == ["reserve"]
