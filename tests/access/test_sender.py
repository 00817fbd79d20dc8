"""Is a client that stays for days, at the other end of stdin, always what it may be now?"""

from collections.abc import Callable

import pytest

from holdfast import Code, Gateway, Observation, Principal, Status
from holdfast.cli.stdio import sender
from tests.access.office import CONFIG, OLGA, Allow, Orders
from tests.approvals.opening import House
from tests.requirements import requirement

SCOPE = "orders:refund"


@requirement("AUT-4", "AUT-1")
async def test_what_it_was_granted_comes_and_ends_while_it_stays(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = Orders()
    async with house.gateway(orders, config=CONFIG, policy=Allow()) as gateway:
        plain, key = await gateway.keys.create(OLGA, "ana", agent="bot")
        monkeypatch.setenv("HOLDFAST_API_KEY", plain)
        client = sender(gateway, None, "stdio")
        assert client().scopes == {"orders:read"}
        await gateway.grants.give(OLGA, "ana", SCOPE, life_s=60)
        assert (await refund(gateway, client, "o-1")).status is Status.DONE
        await house.clock.advance(60)
        assert (await refund(gateway, client, "o-2")).code is Code.TOOL_NOT_FOUND
        await gateway.grants.give(OLGA, "ana", SCOPE)
        await gateway.keys.revoke(OLGA, key.id)
        assert (await refund(gateway, client, "o-3")).status is Status.REFUSED
    assert orders.refunded == ["o-1"]


async def refund(gateway: Gateway, client: Callable[[], Principal], order: str) -> Observation:
    return await gateway.call("test.refund", {"order": order}, principal=client(), key=order)
