"""Do halts, promotions, revocations and grants take effect in every process?

Time stands still here, or passes by exactly as much as a process may take to look again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from holdfast import Code, Status
from tests.access.office import CONFIG, OLGA, Office, Orders
from tests.approvals.opening import House
from tests.policy.case import bundle_of
from tests.polling import FELT_S
from tests.requirements import requirement

OPEN = '@id("open") permit (principal, action, resource);'
SHUT = '@id("shut") permit (principal, action, resource) when { principal.user == "nobody" };'


@pytest.fixture
async def ruled(house: House) -> AsyncIterator[Office]:
    """The same office under policies that are promoted."""
    orders = Orders()
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(house.gateway(orders, config=CONFIG)) for _ in range(2)]
        for gateway in opened:
            await gateway.prepare()
        await opened[0].policies.promote(OLGA, bundle_of(OPEN))
        await opened[0].grants.give(OLGA, "ana", "orders:refund")
        for gateway in opened:
            await gateway.tidy()
        yield Office(house, orders, *opened)


@requirement("PPL-4", "PPL-6", "AUT-4", "LIF-6")
@pytest.mark.parametrize("what", ["halt", "promotion", "key", "grant"])
async def test_what_one_process_stops_no_other_one_does_from_then_on(ruled: Office, what: str) -> None:
    plain, key = await ruled.one.keys.create(OLGA, "ana")
    [grant] = await ruled.one.grants.list(OLGA)
    caller = await ruled.come_in(ruled.other, plain)
    assert (await ruled.refund(ruled.other, caller, "before")).status is Status.DONE
    match what:
        case "halt":
            await ruled.one.halt(OLGA, "test.refund")
        case "promotion":
            await ruled.one.policies.promote(OLGA, bundle_of(SHUT))
        case "key":
            await ruled.one.keys.revoke(OLGA, key.id)
        case _:
            await ruled.one.grants.revoke(OLGA, grant.id)
    after = await ruled.refund(ruled.other, caller, "after")
    codes = {"halt": Code.TOOL_UNAVAILABLE, "promotion": Code.POLICY_VIOLATION}
    assert (after.status, after.code) == (Status.REFUSED, codes.get(what, Code.PERMISSION_DENIED))
    assert ruled.orders.refunded == ["before"]


@requirement("AUT-4", "PPL-6")
async def test_a_grant_is_known_everywhere_within_a_second(ruled: Office, store: str) -> None:
    """Where the store rings, at once."""
    changed = asyncio.Event()
    ruled.other.identity.caches.append(changed.set)
    ruled.other.start()
    await ruled.house.clock.quiet()
    grant = await ruled.one.grants.give(OLGA, "bea", "orders:refund")
    if store != "postgres":
        await ruled.house.clock.advance(1)
    async with asyncio.timeout(FELT_S):
        await changed.wait()
    assert [held.id for held in ruled.other.identity.given["default", "bea"]] == [grant.id]
