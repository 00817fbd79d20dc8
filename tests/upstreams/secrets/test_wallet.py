"""Does a call get the secret that is in force, and no call one it may not have?"""

import asyncio
import logging

import pytest

from holdfast.model.errors import Code, NoEffect, SecretError
from holdfast.testing import ManualClock, settle_loop
from tests.requirements import requirement
from tests.upstreams.secrets.kept import Kept, entry, wallet

CANARY = "kanarienvogel-7391"


@requirement("AUT-8")
async def test_a_secret_is_used_for_its_time_and_then_read_again() -> None:
    clock, kept = ManualClock(), Kept()
    own = wallet(clock, crm=kept)
    for _ in range(3):
        assert (await own.take("crm", "acme")).text == "first-secret"
    assert kept.reads == 1
    kept.text = "second-secret"
    await clock.advance(299.0)
    assert (await own.take("crm", "acme")).text == "first-secret"
    await clock.advance(1.0)
    assert (await own.take("crm", "acme")).text == "second-secret"


async def test_nothing_is_read_before_it_is_used() -> None:
    kept = Kept()
    await wallet(ManualClock(), crm=kept).close()
    assert kept.reads == 0


async def test_many_who_want_it_at_once_read_it_once_and_none_breaks_it_off() -> None:
    clock, kept = ManualClock(), Kept()
    kept.hold = asyncio.Event()
    own = wallet(clock, crm=kept)
    asking = [asyncio.ensure_future(own.take("crm", "acme")) for _ in range(5)]
    await settle_loop()
    asking[0].cancel()
    kept.hold.set()
    assert {(await one).text for one in asking[1:]} == {"first-secret"}
    assert kept.reads == 1


@requirement("AUT-8")
async def test_what_has_ended_is_not_handed_out_and_is_asked_to_be_issued_anew() -> None:
    clock = ManualClock()
    kept = Kept(expires_at=clock.now() + 100.0)
    own = wallet(clock, crm=kept)
    assert (await own.take("crm", "acme")).text == "first-secret"
    await clock.advance(100.0)
    with pytest.raises(NoEffect, match="'crm' has expired; ask an operator to issue it anew") as told:
        await own.take("crm", "acme")
    assert told.value.code is Code.PERMISSION_DENIED
    kept.text, kept.expires_at = "issued-anew", None
    assert (await own.take("crm", "acme")).text == "issued-anew"


async def test_one_that_ends_soon_is_looked_for_early_and_used_until_it_ends() -> None:
    clock = ManualClock()
    kept = Kept(expires_at=clock.now() + 100.0)
    own = wallet(clock, crm=kept)
    await own.take("crm", "acme")
    await clock.advance(45.0)
    assert (await own.take("crm", "acme")).text == "first-secret"
    assert kept.reads == 2
    kept.text, kept.expires_at = "the-next-one", clock.now() + 1000.0
    assert (await own.take("crm", "acme")).text == "the-next-one"


@requirement("AUT-8")
async def test_the_end_an_operator_states_counts_where_it_is_sooner() -> None:
    clock, kept = ManualClock(), Kept()
    own = wallet(clock, crm=entry(kept, expires_at=clock.now() + 10.0))
    await own.take("crm", "acme")
    await clock.advance(10.0)
    with pytest.raises(NoEffect, match="has expired"):
        await own.take("crm", "acme")


@requirement("AUT-6")
async def test_a_tenants_secret_is_for_that_tenant_alone_and_is_not_even_read_for_another() -> None:
    kept = Kept()
    own = wallet(ManualClock(), crm=entry(kept, tenant="acme"))
    with pytest.raises(NoEffect, match="belongs to another tenant") as told:
        await own.take("crm", "globex")
    assert told.value.code is Code.PERMISSION_DENIED
    assert "acme" not in str(told.value)
    assert kept.reads == 0
    assert (await own.take("crm", "acme")).text == "first-secret"


async def test_a_provider_that_is_away_for_a_moment_stops_nobody_and_not_for_long() -> None:
    clock, kept = ManualClock(), Kept()
    own = wallet(clock, crm=kept)
    await own.take("crm", "acme")
    kept.fails = SecretError("it is away", passing=True)
    await clock.advance(300.0)
    assert (await own.take("crm", "acme")).text == "first-secret"
    await clock.advance(300.0)
    with pytest.raises(NoEffect, match="cannot be had now") as told:
        await own.take("crm", "acme")
    assert told.value.code is Code.DEPENDENCY_UNAVAILABLE


async def test_a_provider_that_says_no_is_heeded_at_once() -> None:
    clock, kept = ManualClock(), Kept()
    own = wallet(clock, crm=kept)
    await own.take("crm", "acme")
    kept.fails = SecretError("it was deleted")
    await clock.advance(300.0)
    with pytest.raises(NoEffect, match="issued anew") as told:
        await own.take("crm", "acme")
    assert told.value.code is Code.PERMISSION_DENIED


@requirement("AUT-3")
async def test_a_provider_that_breaks_tells_nobody_what_it_had(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    kept.fails = ValueError(f"cannot read {CANARY}")
    with caplog.at_level(logging.DEBUG), pytest.raises(NoEffect) as told:
        await wallet(ManualClock(), crm=kept).take("crm", "acme")
    assert CANARY not in f"{told.value!r} {told.value.__cause__!r} {caplog.text}"
    assert "ValueError" in caplog.text


async def test_a_secret_nobody_configured_is_refused() -> None:
    with pytest.raises(NoEffect, match="'crm' is not configured"):
        await wallet(ManualClock()).take("crm", "acme")


@requirement("EXE-2")
async def test_a_refused_secret_is_read_anew_and_is_another_one_or_none() -> None:
    clock, kept = ManualClock(), Kept()
    own = wallet(clock, crm=kept)
    refused = await own.take("crm", "acme")
    assert await own.renew("crm", refused) is None  # it is what it is
    kept.text = "second-secret"
    renewed = await own.renew("crm", refused)
    assert renewed is not None
    assert renewed.text == "second-secret"
    assert (await own.take("crm", "acme")).text == "second-secret"
    reads = kept.reads
    late = await own.renew("crm", refused)  # refused before, heard of later: somebody has read it meanwhile
    assert late is not None
    assert (late.text, kept.reads) == ("second-secret", reads)
    kept.fails = SecretError("it is away", passing=True)
    assert await own.renew("crm", renewed) is None
