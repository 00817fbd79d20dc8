"""Do callers get in while the provider changes its keys, is away, or was never there?"""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.model.defaults import JWKS_STALE_S, JWKS_UNKNOWN_S
from tests.oidc.conftest import served_by
from tests.oidc.doors import DOORS, come
from tests.oidc.provider import Provider, provider
from tests.requirements import requirement
from tests.servers.desk import Desk


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Provider]:
    """One that nobody else uses: its keys change."""
    with provider(tmp_path / "provider.log") as one:
        yield one


def later(gateway: Gateway, seconds: float) -> None:
    """As if so much time had passed since the keys were looked at."""
    keys = gateway.identity.issuer_keys
    assert keys is not None
    keys._tried -= seconds
    keys._looked -= seconds


@pytest.mark.parametrize("door", DOORS)
@requirement("AUT-1")
async def test_new_keys_are_learnt_without_a_restart_and_dropped_ones_are_forgotten(
    gateway: Gateway, issuer: Provider, door: str, desk: Desk
) -> None:
    async with served_by(gateway) as served:
        old = f"Bearer {await issuer.of_program()}"
        assert (await come(served, door, old)).status == 200
        await issuer.rotate(keep=True)
        later(gateway, JWKS_UNKNOWN_S)
        new = f"Bearer {await issuer.of_program()}"
        assert (await come(served, door, new)).status == 200
        assert (await come(served, door, old)).status == 200
        await issuer.rotate(keep=False)
        later(gateway, JWKS_UNKNOWN_S)
        newest = f"Bearer {await issuer.of_program()}"
        assert (await come(served, door, newest)).status == 200
        assert [(await come(served, door, one)).status for one in (old, new)] == [401, 401]


@requirement("AUT-1")
async def test_while_the_provider_is_away_its_keys_hold_for_a_bounded_time(
    config: dict[str, Any], tmp_path: Path, desk: Desk
) -> None:
    async with AsyncExitStack() as stack:
        with provider(tmp_path / "away.log") as going:
            token = f"Bearer {await going.of_program()}"
            config["auth"] |= {"issuer": going.url}
            gateway = await stack.enter_async_context(Gateway.open(config))
        served = await stack.enter_async_context(served_by(gateway))
        later(gateway, JWKS_STALE_S - 60)
        assert (await come(served, "rest", token)).status == 200
        later(gateway, 61)
        gateway.identity.forget()
        assert (await come(served, "rest", token)).status == 401


@requirement("AUT-1")
async def test_a_gateway_that_starts_before_its_provider_lets_nobody_in_until_it_is_there(
    config: dict[str, Any], issuer: Provider, desk: Desk
) -> None:
    token = f"Bearer {await issuer.of_program()}"
    config["auth"] |= {"jwks_url": f"{issuer.url}/nothing/there"}
    async with Gateway.open(config) as gateway, served_by(gateway) as served:
        assert (await come(served, "rest", token)).status == 401
        keys = gateway.identity.issuer_keys
        assert keys is not None
        keys._url = f"{issuer.url}/jwks"
        assert (await come(served, "rest", token)).status == 401  # it was asked a moment ago
        later(gateway, JWKS_UNKNOWN_S)
        assert (await come(served, "rest", token)).status == 200
