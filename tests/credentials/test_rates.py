"""Is a credential used no faster than was allowed, whoever's call it is?"""

from dataclasses import replace
from typing import Any

import pytest

from holdfast import Code, Effect, Principal, tool
from holdfast.config import parse
from holdfast.gateway.limits import rates
from tests.lifecycle.conftest import Open
from tests.requirements import requirement

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)


class Crm:
    @tool(effect=Effect.READ_ONLY, credentials=[{"secret": "crm", "as": "argument", "name": "token"}])
    async def find(self, token: str) -> dict[str, Any]:
        """Find something."""
        return {}

    @tool(effect=Effect.READ_ONLY, credentials=[{"secret": "crm", "as": "argument", "name": "token"}])
    async def count(self, token: str) -> dict[str, Any]:
        """Count something."""
        return {}

    @tool(effect=Effect.READ_ONLY)
    async def look(self) -> dict[str, Any]:
        """Look at something that needs no credential."""
        return {}


@requirement("POL-5")
async def test_a_rate_per_credential_counts_all_tools_and_tenants_that_use_it(
    open_gateway: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_TOKEN", "kanarienvogel-7391")
    config = {
        "secrets": {"crm": {"env": "CRM_TOKEN"}},
        "limits": {"rates": [{"per": "credential", "match": "cr*", "calls": 2, "per_s": 60}]},
    }
    async with open_gateway(Crm(), config=config) as gateway:
        seen = [
            await gateway.call("test.find", {}, principal=ANA),
            await gateway.call("test.count", {}, principal=replace(ANA, tenant="globex")),
            await gateway.call("test.find", {}, principal=replace(ANA, user="ben")),
            await gateway.call("test.look", {}, principal=ANA),
        ]
    assert [answer.code for answer in seen] == [None, None, Code.RATE_LIMITED, None]
    assert seen[2].remedy.retry_after_ms == 30_000


@requirement("POL-5")
def test_what_goes_with_every_request_to_an_upstream_counts_for_its_tools() -> None:
    tree = {
        "secrets": {"crm": {"env": "A"}, "own": {"env": "B", "tenant": "acme"}},
        "upstreams": {"shop": {"mcp": {"url": "https://x/mcp", "headers": {"X": "a ${secret:crm} b"}}}},
        "limits": {"rates": [{"per": "credential", "calls": 1, "per_s": 1}]},
    }
    [rate] = rates(parse(tree))
    contract = Crm().find.build("test")
    assert list(rate.secrets(contract, "shop", "acme")) == ["crm"]
    both = contract.model_copy(
        update={
            "security": contract.security.model_copy(
                update={"credentials": [{"secret": "own", "as": "header", "name": "X"}]}
            )
        }
    )
    assert list(rate.secrets(both, "other", "acme")) == ["own"]
    assert list(rate.secrets(both, "other", "globex")) == []
