"""Does the gateway sign in with an account of its own, and send its secret to one server only?"""

from dataclasses import replace

import pytest

from holdfast.model.errors import Code, NoEffect
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory.tokens import MemoryTokens
from holdfast.testing import ManualClock
from holdfast.upstreams.mcp.oauth_client import Client
from holdfast.upstreams.secrets.opening import Standing
from tests.requirements import requirement
from tests.upstreams.oauth.world import ALICE, world
from tests.upstreams.secrets.kept import Kept, entry, wallet

ROBOT = Client(type="client_credentials", client_id="robot", client_secret="sesame")


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_it_obtains_and_renews_a_token_without_anybody(method: str) -> None:
    async with world(machines=[method]) as w:
        gateway = w.authorizer(client=ROBOT)
        assert await w.call(gateway, ALICE) == (200, "robot")
        assert await w.call(gateway, "acme/bob/agent") == (200, "robot")
        await w.clock.advance(3600)
        assert await w.call(gateway) == (200, "robot")
        assert w.seen == ["", "robot", "robot", "robot"], "the renewal was not left to a refusal"
        assert w.office.asked == [f"client_credentials by {method}"] * 2


async def test_a_token_that_is_refused_early_is_replaced() -> None:
    async with world(machines=["client_secret_basic"]) as w:
        gateway = w.authorizer(client=ROBOT)
        assert await w.call(gateway) == (200, "robot")
        w.office.revoke("robot")
        assert await w.call(gateway) == (200, "robot")


@requirement("AUT-3")
async def test_the_secret_goes_to_no_other_server_than_the_configured_one() -> None:
    async with world(machines=["client_secret_post"]) as w:
        elsewhere = Client(
            type="client_credentials", client_id="robot", client_secret="sesame", issuer="https://idp.example"
        )
        with pytest.raises(NoEffect, match="gave no token; the log says why") as refused:
            await w.call(w.authorizer(client=elsewhere))
        assert refused.value.code is Code.PERMISSION_DENIED
        assert w.office.asked == []


@requirement("AUT-3")
async def test_without_one_configured_it_goes_on_to_the_server_that_saw_it_first() -> None:
    ways = ["client_secret_post"]
    async with world(machines=ways) as first, world(machines=ways) as second:
        gateway = first.authorizer(client=ROBOT)
        assert await first.call(gateway) == (200, "robot")
        first.office.revoke("robot")
        moved = f'Bearer resource_metadata="{second.issuer}/claim?for={first.url}"'
        await gateway.headers(ALICE)
        with pytest.raises(NoEffect):
            await gateway.challenged(ALICE, 401, moved)
        assert second.office.asked == []
        naive = first.authorizer(MemoryTokens(Keyring()), client=ROBOT)
        assert await naive.challenged(ALICE, 401, moved), "who has met nobody yet believes the claim"
        assert second.office.asked == ["client_credentials by client_secret_post"]


async def test_a_wrong_secret_is_told_apart_from_a_server_that_is_down() -> None:
    async with world(machines=["client_secret_post"]) as w:
        wrong = Client(type="client_credentials", client_id="robot", client_secret="mistyped")
        with pytest.raises(NoEffect, match="the log says why") as refused:
            await w.call(w.authorizer(client=wrong))
        assert refused.value.code is Code.PERMISSION_DENIED


@requirement("AUT-8")
async def test_the_gateways_own_secret_is_read_with_each_use() -> None:
    async with world(machines=["client_secret_post"]) as w:
        kept = Kept("what-it-was-before")
        own = wallet(ManualClock(), robot=entry(kept, ttl_s=0.0))
        secret = Standing(own, {"client_secret": "${secret:robot}"})
        gateway = w.authorizer(client=replace(ROBOT, client_secret=None), secret=secret)
        with pytest.raises(NoEffect, match="gave no token"):
            await w.call(gateway)
        kept.text = str(ROBOT.client_secret)
        assert await w.call(gateway) == (200, "robot")
