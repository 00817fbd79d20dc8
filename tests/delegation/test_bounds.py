"""Does a call stay inside what was delegated, from the first look to the last moment?"""

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from holdfast import Code, Gateway, Observation, Principal, Status
from holdfast.gateway.delegation import Issued
from holdfast.identity import Unauthenticated
from holdfast.identity.delegation import Wish
from holdfast.lifecycle import GATES, admit, receive
from holdfast.model.call import Proposal
from holdfast.model.errors import Forbidden, NotFound
from tests.approvals.opening import House
from tests.delegation.shop import Shop, at_work, key
from tests.requirements import requirement


async def handed(gateway: Gateway, presented: str = "", **wish: Any) -> Issued:
    subject = await gateway.delegation.subject(presented or key("alice"))
    said: dict[str, Any] = {"agent": "bot"}
    said |= {name: frozenset(it) if isinstance(it, set) else it for name, it in wish.items()}
    return await gateway.delegation.issue(subject.principal, subject, Wish(**said))


def caller(gateway: Gateway, issued: Issued) -> Principal:
    return gateway.identity.authenticate({"Authorization": f"Bearer {issued.token}"})


async def call(gateway: Gateway, issued: Issued, tool: str, **arguments: Any) -> Observation:
    details = {"key": arguments.pop("key")} if "key" in arguments else {}
    return await gateway.call(f"test.{tool}", arguments, principal=caller(gateway, issued), **details)


@requirement("AUT-2", "VAL-2")
async def test_a_tool_out_of_reach_is_no_tool_at_all(house: House) -> None:
    shop = Shop()
    async with at_work(house, shop) as gateway:
        narrow = await handed(gateway, tools={"test.order"})
        refused = await call(gateway, narrow, "refund", order="o-1", key="k")
        unknown = await call(gateway, narrow, "refunds", order="o-1", key="k")
        listed = [listing.tool.contract.tool for listing in gateway.tools(caller(gateway, narrow))]
        may = [gateway.may_use(caller(gateway, narrow), f"test.{name}") for name in ("order", "refund")]
        read = await call(gateway, narrow, "order", order="o-1")
    assert (refused.code, shop.refunded) == (Code.TOOL_NOT_FOUND, [])
    assert (refused.message or "").replace("refund", "refunds") == unknown.message
    assert (listed, may) == (["test.order"], [True, False])
    assert read.status is Status.DONE
    [record] = [r for r in house.records() if r.kind == "refusal" and "test.refund@" in r.body]
    assert orjson.loads(record.body)["error_code"] == "PERMISSION_DENIED"


@requirement("AUT-2", "VAL-2")
async def test_a_resource_out_of_reach_is_refused_and_its_tool_is_not_hidden(house: House) -> None:
    shop = Shop()
    async with at_work(house, shop) as gateway:
        one = await handed(gateway, resources={"orders/o-1"})
        other = await call(gateway, one, "refund", order="o-2", key="k")
        own = await call(gateway, one, "refund", order="o-1", key="k2")
        whole = await call(gateway, one, "search", text="o-1")
        visible = {listing.tool.contract.identity.name for listing in gateway.tools(caller(gateway, one))}
    assert (other.code, own.status) == (Code.PERMISSION_DENIED, Status.DONE)
    assert "does not reach these 'orders'" in (other.message or "")
    assert "o-2" not in (other.message or "")
    assert whole.code is Code.PERMISSION_DENIED  # its contract does not say what it touches
    assert visible == {"order", "search", "refund"}
    assert shop.refunded == ["o-1"]


@requirement("AUT-2")
async def test_a_call_credential_does_one_thing_for_a_moment(house: House) -> None:
    shop = Shop()
    async with at_work(house, shop) as gateway:
        agent = await handed(gateway)
        once = await handed(
            gateway, agent.token, agent=None, tools={"test.refund"}, resources={"orders/o-1"}, life_s=30.0
        )
        assert caller(gateway, once).id == "alice/bot"
        assert (await call(gateway, once, "refund", order="o-2", key="a")).code is Code.PERMISSION_DENIED
        assert (await call(gateway, once, "order", order="o-1")).code is Code.TOOL_NOT_FOUND
        assert (await call(gateway, once, "refund", order="o-1", key="b")).status is Status.DONE
        was = caller(gateway, once)
        house.clock.jump(31)
        late = await gateway.call("test.refund", {"order": "o-1"}, principal=was, key="c")
    assert (late.code, shop.refunded) == (Code.PERMISSION_DENIED, ["o-1"])
    assert "has ended" in (late.message or "")


@requirement("AUT-2")
async def test_a_call_does_not_run_on_after_what_it_rests_on(house: House) -> None:
    seen: list[float] = []
    async with at_work(house) as gateway:
        brief = await handed(gateway, life_s=2.0)
        proposal = Proposal("test.order", {"order": "o-1"}, caller(gateway, brief))
        made = receive(proposal, gateway._ports)
        await admit(made, gateway._ports, GATES[:2])
        seen.append(made.deadline - made.started)
    assert 0 < seen[0] <= 2.0


@requirement("AUT-2", "LIF-3")
@pytest.mark.parametrize("meanwhile", ["nothing", "it ended", "it was revoked", "its key was"])
async def test_a_held_call_is_released_only_while_its_delegation_counts(house: House, meanwhile: str) -> None:
    shop = Shop()
    async with at_work(house, shop) as gateway:
        olga = gateway.identity.authenticate({"Authorization": f"Bearer {key('olga')}"})
        issued = await handed(gateway, agent="writer", tools={"test.announce"}, life_s=60.0)
        held = await gateway.call(
            "test.announce",
            {"text": "sale"},
            principal=caller(gateway, issued),
            key="k",
            release="gateway",
        )
        assert held.approval is not None
        if meanwhile == "it ended":
            house.clock.jump(61)
        elif meanwhile == "it was revoked":
            await gateway.keys.revoke(olga, f"token:{issued.jti}")
        elif meanwhile == "its key was":
            await gateway.keys.revoke(olga, "alicekey")
        await gateway.decide(olga, held.approval.id, True)
        while gateway._house._releasing:
            await asyncio.wait(gateway._house._releasing)
        await gateway.tidy()
    assert shop.refunded == (["sale"] if meanwhile == "nothing" else [])


@requirement("AUT-4", "AUT-5")
async def test_what_is_revoked_is_revoked_with_everything_handed_on_from_it(house: House) -> None:
    async with at_work(house) as gateway:
        olga = gateway.identity.authenticate({"Authorization": f"Bearer {key('olga')}"})
        first = await handed(gateway)
        second = await handed(gateway, first.token, agent="helper")
        third = await handed(gateway, second.token, agent="helpers-helper")
        was = caller(gateway, third)
        assert was.act == ("helpers-helper", "helper", "bot")
        await gateway.keys.revoke(olga, f"token:{second.jti}")
        assert (await call(gateway, first, "order", order="o")).status is Status.DONE
        for issued in (second, third):
            with pytest.raises(Unauthenticated, match="not accepted"):
                caller(gateway, issued)
        late = await gateway.call("test.order", {"order": "o"}, principal=was)
        assert late.status is Status.REFUSED  # who was let in before is stopped at the claim


@requirement("AUT-4")
async def test_whoever_handed_it_on_takes_it_back_and_nobody_else_does(house: House) -> None:
    async with at_work(house) as gateway:
        alice, bot = (gateway.identity.holder(key(name)).principal for name in ("alice", "bot"))
        issued = await handed(gateway, key("bot"), agent="helper")
        above = await handed(gateway)
        helper = caller(gateway, issued)
        with pytest.raises(Forbidden):  # made by alice, not by her agent
            await gateway.keys.revoke(bot, f"token:{above.jti}")
        with pytest.raises(Forbidden):
            await gateway.keys.revoke(helper, f"token:{above.jti}")
        await gateway.keys.revoke(bot, f"token:{issued.jti}")
        await gateway.keys.revoke(alice, f"token:{above.jti}")
        for gone in (issued, above):
            with pytest.raises(Unauthenticated):
                caller(gateway, gone)


@requirement("AUT-2", "AUD-1")
async def test_the_log_says_who_handed_on_what_and_who_acted(house: House) -> None:
    async with at_work(house) as gateway:
        first = await handed(gateway, scopes={"orders:read"}, tools={"test.*"})
        second = await handed(gateway, first.token, agent="helper", life_s=60.0)
        await call(gateway, first, "order", order="o")
        await call(gateway, second, "order", order="o")
        await gateway.call("test.order", {"order": "o"}, principal=gateway.identity.holder(key("bot"))[0])
    told = [orjson.loads(record.body) for record in house.records()]
    made = [one for one in told if one["operation"] == "delegate"]
    assert [one["chain"] for one in made] == [["bot"], ["helper", "bot"]]
    assert [one["delegation"] for one in made] == [first.jti, second.jti]
    assert made[1]["rests_on"] == ["key:alicekey", f"token:{first.jti}"]
    assert (made[0]["scopes"], made[0]["tools"]) == (["orders:read"], ["test.*"])
    calls = [one for one in told if one.get("tool") == "test.order@1.0.0" and one["status"] == "done"]
    assert [(one["agent"], one.get("act"), one.get("delegation")) for one in calls] == [
        ("bot", None, first.jti),
        ("bot", ["helper", "bot"], second.jti),
        ("bot", None, None),
    ]
    whole = b"".join(record.body.encode() for record in house.records())
    assert first.token.encode() not in whole
    assert first.token.split(".")[2].encode() not in whole


@requirement("AUT-5")
async def test_a_delegate_sees_the_calls_it_could_have_made_and_no_others(house: House) -> None:
    async with at_work(house) as gateway:
        bot = gateway.identity.holder(key("bot"))[0]
        refund = await gateway.call("test.refund", {"order": "o-1"}, principal=bot, key="k")
        reader = caller(gateway, await handed(gateway, key("bot"), agent="reader", tools={"test.order"}))
        refunder = caller(gateway, await handed(gateway, key("bot"), agent="other", tools={"test.refund"}))
        assert reader.id == bot.id
        assert await gateway.find(reader, refund.call_id) is None
        looker = caller(gateway, await handed(gateway, key("bot"), agent="looker", scopes={"orders:read"}))
        assert await gateway.find(looker, refund.call_id) is None
        with pytest.raises(NotFound):
            await gateway.cancel(looker, refund.call_id)
        assert await gateway.find(refunder, refund.call_id) is not None


@requirement("AUT-5")
async def test_a_halted_agent_is_halted_under_every_name_it_hands_on_to(house: House) -> None:
    async with at_work(house) as gateway:
        olga = gateway.identity.authenticate({"Authorization": f"Bearer {key('olga')}"})
        below = await handed(gateway, key("bot"), agent="innocent")
        await gateway.halt(olga, "alice/bot")
        stopped = await call(gateway, below, "refund", order="o-1", key="k")
    assert stopped.code is Code.TOOL_UNAVAILABLE


async def test_why_not_says_that_the_delegation_is_too_narrow(house: House) -> None:
    async with at_work(house) as gateway:
        narrow = await handed(gateway, tools={"test.order"})
        asking = replace(caller(gateway, narrow), roles=frozenset({"user"}))
        told = await gateway.why(asking, "test.refund", {"order": "o"})
    assert "does not reach this tool" in (told.message or "")
    assert any("delegate again, with the tool 'test.refund'" in change for change in told.changes)


async def test_what_the_configuration_leaves_of_it_is_told_when_it_is_given(house: House) -> None:
    async with at_work(house) as gateway:
        issued = await handed(gateway)  # alice holds orders:*, and her agent may have a part of it
        assert issued.given.scopes == {"orders:read", "orders:refund"} == caller(gateway, issued).scopes
