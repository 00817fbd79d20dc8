"""Are tokens sealed at rest, and does the right one stay when several processes write?"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.model.errors import StoreError
from holdfast.testing import ManualClock
from holdfast.upstreams.mcp.oauth_grant import TokenStore
from tests.requirements import requirement
from tests.stored import ALL, DURABLE, durable, place, stored

ALICE = ("acme", "alice")
BOB = ("acme", "bob")


@pytest.fixture(params=ALL)
async def tokens(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TokenStore]:
    async with place(request.param, tmp_path), stored(request.param, tmp_path, ManualClock()) as store:
        yield store.tokens


async def test_what_was_kept_is_loaded_by_its_owner_for_its_upstream(tokens: TokenStore) -> None:
    assert await tokens.save(ALICE, "crm", b"hers", 1.0, new=True)
    assert await tokens.save(BOB, "crm", b"his", 1.0, new=True)
    assert [await tokens.load(owner, "crm") for owner in (ALICE, BOB)] == [b"hers", b"his"]
    assert await tokens.load(ALICE, "mail") is None
    assert await tokens.load(("other", "alice"), "crm") is None


async def test_of_two_renewals_the_newer_stays_whichever_is_written_last(tokens: TokenStore) -> None:
    assert await tokens.save(ALICE, "crm", b"signed in", 1.0, new=True)
    assert await tokens.save(ALICE, "crm", b"newer", 3.0)
    assert not await tokens.save(ALICE, "crm", b"older", 2.0)
    assert not await tokens.save(ALICE, "crm", b"older", 2.0, new=True)
    assert await tokens.load(ALICE, "crm") == b"newer"


async def test_a_renewal_does_not_bring_back_what_was_signed_out(tokens: TokenStore) -> None:
    await tokens.save(ALICE, "crm", b"signed in", 1.0, new=True)
    assert await tokens.drop(ALICE, "crm")
    assert not await tokens.drop(ALICE, "crm")
    assert not await tokens.save(ALICE, "crm", b"renewed", 2.0)
    assert await tokens.load(ALICE, "crm") is None


async def test_one_may_renew_at_a_time_until_it_has_or_took_too_long(tokens: TokenStore) -> None:
    await tokens.save(ALICE, "crm", b"signed in", 1.0, new=True)
    assert await tokens.lease(ALICE, "crm", 1.0, now=10.0, until=25.0)
    assert not await tokens.lease(ALICE, "crm", 1.0, now=24.0, until=39.0)
    assert await tokens.lease(ALICE, "crm", 1.0, now=25.0, until=40.0)
    assert await tokens.save(ALICE, "crm", b"renewed", 26.0)
    assert not await tokens.lease(ALICE, "crm", 1.0, now=27.0, until=42.0), "it was renewed meanwhile"
    assert await tokens.lease(ALICE, "crm", 26.0, now=27.0, until=42.0)
    assert not await tokens.lease(BOB, "crm", 1.0, now=27.0, until=42.0)


@requirement("AUT-6", "CON-6")
@pytest.mark.parametrize("kind", DURABLE)
async def test_erasing_a_tenant_makes_its_tokens_unreadable(kind: str, tmp_path: Path) -> None:
    async with place(kind, tmp_path), durable(kind, tmp_path, ManualClock()) as store:
        await store.tokens.save(ALICE, "crm", b"hers", 1.0, new=True)
        assert await store.audit.erase("acme", "olga")
        with pytest.raises(StoreError, match="its key is gone"):
            await store.tokens.load(ALICE, "crm")
        assert await store.tokens.save(ALICE, "crm", b"signed in again", 2.0, new=True)
        assert await store.tokens.load(ALICE, "crm") == b"signed in again"
