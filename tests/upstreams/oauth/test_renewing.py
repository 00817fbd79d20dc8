"""Is a token renewed before it ends, once, and is the call refused where that cannot be done?"""

import asyncio

import pytest

from holdfast.model.errors import Code, NoEffect
from holdfast.upstreams.mcp.oauth_grant import Owner
from tests.requirements import requirement
from tests.upstreams.oauth.world import ALICE, decoded, until, world

OWNER = Owner("acme", "alice")


@requirement("AUT-8")
async def test_a_token_is_renewed_a_minute_before_it_ends() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        await w.clock.advance(3600 - 61)
        assert await w.call(gateway) == (200, "alice")
        assert w.office.count("refresh_token") == 0
        await w.clock.advance(2)
        assert await w.call(gateway) == (200, "alice")
        assert (w.office.count("refresh_token"), w.seen) == (1, ["alice", "alice"])


async def test_a_token_that_lives_a_minute_is_not_renewed_all_the_time() -> None:
    async with world() as w:
        w.office.life_s = 60
        await w.sign_in()
        gateway = w.authorizer()
        await w.clock.advance(50)
        assert await w.call(gateway) == (200, "alice")
        assert w.office.count("refresh_token") == 0
        await w.clock.advance(5)
        assert await w.call(gateway) == (200, "alice")
        assert w.office.count("refresh_token") == 1


async def test_many_calls_at_once_renew_once() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        await w.clock.advance(3600)
        answers = await asyncio.gather(*(w.call(gateway) for _ in range(20)))
        assert answers == [(200, "alice")] * 20
        assert w.office.count("refresh_token") == 1


async def test_a_token_that_is_refused_early_is_renewed_once() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        assert await w.call(gateway) == (200, "alice")
        w.office.revoke("alice")
        answers = await asyncio.gather(*(w.call(gateway) for _ in range(8)))
        assert answers == [(200, "alice")] * 8
        assert w.office.count("refresh_token") == 1


async def test_a_refusal_that_comes_late_speaks_of_the_token_that_was_sent() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()

        async def request(refused: asyncio.Event) -> bool:
            await gateway.headers(ALICE)
            await refused.wait()
            return await gateway.challenged(ALICE, 401, "Bearer")

        soon, late = asyncio.Event(), asyncio.Event()
        first, second = asyncio.create_task(request(soon)), asyncio.create_task(request(late))
        await asyncio.sleep(0)
        soon.set()
        assert await first is True
        late.set()
        assert await second is True, "there is a newer token to try"
        assert w.office.count("refresh_token") == 1


@requirement("AUT-8")
async def test_a_renewed_token_that_is_refused_too_is_not_renewed_for_ever() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        w.office.revoke("alice")
        await gateway.headers(ALICE)
        assert await gateway.challenged(ALICE, 401, "Bearer") is True
        await gateway.headers(ALICE)
        with pytest.raises(NoEffect, match="holdfast login crm"):
            await gateway.challenged(ALICE, 401, "Bearer")
        assert w.office.count("refresh_token") == 1


@requirement("AUT-8")
async def test_what_cannot_be_renewed_is_refused_before_anything_is_sent() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        w.office.revoke("alice", for_good=True)
        await w.clock.advance(3600)
        for _ in range(3):
            with pytest.raises(NoEffect, match="has expired; run 'holdfast login crm --as alice'") as refused:
                await w.call(gateway)
            assert refused.value.code is Code.PERMISSION_DENIED
        assert (w.seen, w.office.count("refresh_token")) == ([], 1)
        await w.sign_in()
        assert await w.call(gateway) == (200, "alice")


async def test_a_restarted_gateway_still_knows_where_to_renew() -> None:
    async with world() as w:
        await w.sign_in()
        await w.clock.advance(3600)
        w.office.asked.clear()
        assert await w.call(w.authorizer()) == (200, "alice")
        assert w.office.asked == ["refresh_token"]


async def test_while_the_authorization_server_is_down_a_token_is_used_to_its_end() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        w.office.down = True
        await w.clock.advance(3600 - 30)
        assert await w.call(gateway) == (200, "alice")
        await w.clock.advance(60)
        with pytest.raises(NoEffect, match="try again later") as refused:
            await w.call(gateway)
        assert refused.value.code is Code.DEPENDENCY_UNAVAILABLE
        w.office.down = False
        assert await w.call(gateway) == (200, "alice")


async def test_a_caller_who_goes_away_does_not_break_off_a_renewal() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        await w.clock.advance(3600)
        w.office.hold = asyncio.Event()
        caller = asyncio.create_task(w.call(gateway))
        await until(lambda: w.office.count("refresh_token") == 1)
        caller.cancel()
        await asyncio.wait([caller])
        w.office.hold.set()
        await gateway.close()
        kept = decoded(await w.store.load(OWNER, "crm"))["tokens"]
        assert kept["refresh_token"] in w.office.refreshes
        assert await w.call(gateway) == (200, "alice")
        assert w.office.count("refresh_token") == 1


async def test_an_https_upstream_is_not_led_to_an_http_token_endpoint() -> None:
    async with world() as w:
        await w.sign_in()
        await w.clock.advance(3600)
        w.office.asked.clear()
        w.url = "https://crm.example/mcp"
        with pytest.raises(NoEffect):
            await w.authorizer().headers(ALICE)
        assert w.office.asked == []
