"""Is a rule or a plan that was used or ended since the backup used or ended after it?"""

from holdfast.gateway.plans import Wish as Step
from holdfast.gateway.rules import Wish
from holdfast.model.observation import Status
from holdfast.model.standing import Plan, Rule
from tests.lives.tools import effects
from tests.lives.town import ANA, BEN, Town
from tests.requirements import requirement


async def standing(home: Town, most: int = 2) -> tuple[Rule, Plan]:
    """A rule for names that begin with r, and a plan of one step."""
    async with home.open() as gateway:
        names = {"name": {"prefix": "r"}}
        rule = await gateway.rules.propose(
            BEN, Wish(tool="town.grave", principals="ana/*", arguments=names, most=most)
        )
        await gateway.rules.accept(BEN, rule.id)
        planned = await gateway.plans.propose(ANA, (Step(tool="town.grave", arguments={"name": "step"}),))
        assert planned.approval is not None
        assert planned.plan is not None
        await gateway.decide(BEN, planned.approval.id, approve=True)
        return rule, planned.plan


@requirement("PPL-5", "APR-8", "APR-9")
async def test_what_was_used_since_is_used(home: Town) -> None:
    rule, plan = await standing(home)
    noon = await home.back_up()
    for name in ("r-1", "r-2", "step"):
        assert (await home.call(name, "grave")).status is Status.DONE
    await home.restore(noon)
    assert (await home.call("r-3", "grave")).status is Status.REFUSED
    await home.recover()
    assert (await home.call("r-3", "grave")).status is Status.HELD
    async with home.open() as gateway:
        arguments, key = {"name": "step"}, "step-again"
        again = await gateway.call("town.grave", arguments, key=key, principal=ANA)
        now = (await gateway.rules.get(ANA, rule.id)).used
        used = (await gateway.plans.get(ANA, plan.id)).steps[0].used_nonce
    assert (again.status, now, used is None) == (Status.HELD, 2, False)
    assert effects() == {"r-1": 1, "r-2": 1, "step": 1}


@requirement("PPL-5", "APR-8", "APR-9")
async def test_what_was_revoked_since_stays_revoked_and_what_is_new_stands(home: Town) -> None:
    rule, plan = await standing(home)
    noon = await home.back_up()
    async with home.open() as gateway:
        await gateway.rules.revoke(BEN, rule.id)
        await gateway.plans.revoke(BEN, plan.id)
    later, _ = await standing(home)
    await home.restore(noon)
    await home.recover()
    async with home.open() as gateway:
        ended = [
            (await gateway.rules.get(ANA, rule.id)).ended_by,
            (await gateway.plans.get(ANA, plan.id)).ended_by,
        ]
        fresh = await gateway.rules.get(ANA, later.id)
    assert (ended, fresh.ended_by) == (["ben", "ben"], None)
    assert (await home.call("r-1", "grave")).status is Status.DONE


@requirement("PPL-5", "APR-8", "APR-9")
async def test_where_nothing_is_left_to_tell_how_often_they_were_used_they_have_ended(home: Town) -> None:
    await standing(home)
    noon = await home.back_up()
    assert (await home.call("step", "grave")).status is Status.DONE
    await home.restore(noon)
    await home.recover(note="the disk is gone")
    assert (await home.call("r-1", "grave")).status is Status.HELD
    async with home.open() as gateway:
        again = await gateway.call("town.grave", {"name": "step"}, key="another", principal=ANA)
    assert again.status is Status.HELD
