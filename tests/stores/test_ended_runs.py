"""Does a store find the calls whose runs are over and that nobody has told?"""

from dataclasses import replace

from holdfast.model.observation import Status
from holdfast.model.run import RunState
from holdfast.model.vocabulary import State
from holdfast.ports import Settlement
from tests.requirements import requirement
from tests.stores.calls import PAY, make_call, observed
from tests.stores.test_runs import RUN
from tests.stores.world import World


@requirement("CHN-6", "IDM-5")
async def test_a_run_that_is_over_is_found_until_its_call_is_settled(world: World) -> None:
    call = make_call(world.clock, "k", tool=PAY)
    operation = await world.claim(call)
    assert await world.ledger.finish(call, observed(call, Status.UNKNOWN), State.UNKNOWN)
    await world.runs.begin(replace(RUN, call_id=operation.call_id))
    await world.runs.begin(replace(RUN, id="run_2", key="k-2"))
    for name, state in (("run_2", RunState.COMPLETED), ("run_1", RunState.COMPENSATED)):
        assert await world.runs.ended() == []
        taken = await world.runs.take_up("default", name)
        assert taken is not None
        await world.runs.journal(taken).move(state)
    assert await world.runs.ended() == [("default", "run_1")]
    found = await world.ledger.find_call("default", operation.call_id)
    assert found is not None
    said = Settlement(state=State.NO_EFFECT, observation=None, by="run")
    assert await world.ledger.settle(found, said)
    assert await world.runs.ended() == []
