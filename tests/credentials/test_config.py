"""Is a configuration that points at secrets understood, and every slip in it told?"""

from pathlib import Path
from typing import Any

import pytest

from holdfast.config import parse
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.secrets import wallet
from holdfast.model.errors import ConfigError
from holdfast.model.secret import filled, references
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.upstreams.secrets.vault_server import TOKEN, VaultServer

CANARY = "kanarienvogel-7391"
SHOP = {"url": "https://shop.example/mcp"}


def shop(**server: Any) -> dict[str, Any]:
    return {"secrets": {"crm": {"env": "CRM"}}, "upstreams": {"shop": {"mcp": {**SHOP, **server}}}}


def test_a_reference_is_left_for_later_and_a_variable_is_not() -> None:
    tree = shop(headers={"A": "Bearer ${secret:crm}", "B": "${TEAM}", "C": "$${secret:crm}"})
    server = parse(tree, environ={"TEAM": "blue"}).upstreams["shop"].mcp
    assert server is not None
    assert server.headers == {"A": "Bearer ${secret:crm}", "B": "blue", "C": "$${secret:crm}"}
    assert list(references(server.headers["A"])) == ["crm"]
    assert list(references(server.headers["C"])) == []
    assert filled(server.headers["C"], {}) == "${secret:crm}"


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        (
            shop(headers={"A": "${secret:crn}"}),
            "shop.mcp.headers.A: there is no secret 'crn'; did you mean 'crm'",
        ),
        (shop(headers={"A": "${secret:}"}), "names no secret"),
        (shop(url="https://x/${secret:crm}"), "is for headers, env and client_secret"),
        ({"secrets": {"crm": {}}}, "secrets.crm: name either 'env', 'file', 'command', 'vault' or 'keyring'"),
        ({"secrets": {"crm": {"env": "A", "file": "b"}}}, "secrets.crm: name either"),
        ({"secrets": {"crm": {"command": "pass show crm"}}}, "secrets.crm.command"),
        ({"secrets": {"crm": {"command": []}}}, "secrets.crm.command"),
        ({"secrets": {"a b": {"env": "A"}}}, "use letters, digits and"),
        ({"secrets": {"crm": {"env": "not-a-variable"}}}, "secrets.crm.env"),
        ({"secrets": {"crm": {"vault": {"address": "vault:8200", "path": "x"}}}}, "https://host:8200"),
        (
            {"secrets": {"crm": {"vault": {"address": "http://v", "path": "x", "token": "hvs.x"}}}},
            "'env:NAME'",
        ),
        ({"secrets": {"crm": {"env": "A", "ttl": 5}}}, "did you mean 'ttl_s'"),
        ({"secrets": {"crm": {"env": "A", "expires": "2030-01-01T00:00:00"}}}, "secrets.crm.expires"),
        (shop(auth={"type": "token_exchange"}), "auth.token_url: is required"),
        (shop(auth={"type": "token_exchange", "token_url": "https://s/t", "issuer": "x"}), "auth.issuer"),
        (shop(auth={"type": "oauth", "audience": "x"}), "auth.audience: is for 'token_exchange'"),
    ],
)
def test_every_slip_is_told_with_its_place(tree: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse(tree)
    assert says in str(told.value)


@requirement("AUT-6")
def test_a_tenants_secret_is_not_for_what_serves_every_tenant() -> None:
    tree = shop(headers={"A": "${secret:crm}"})
    tree["secrets"]["crm"]["tenant"] = "acme"
    with pytest.raises(ConfigError, match="is for tenant 'acme' alone"):
        parse(tree)


@requirement("AUT-3")
async def test_each_provider_is_built_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM", CANARY)
    (tmp_path / "db.key").write_text("of-the-file\n")
    (tmp_path / "vault.token").write_text(f"{TOKEN}\n")
    server, clock = VaultServer(), ManualClock()
    server.put("pay/stripe", namespace="team", mount="kv", key="of-the-vault")
    async with server.open() as origin:
        tree = {
            "secrets": {
                "crm": {"env": "CRM"},
                "db": {"file": "db.key"},
                "pager": {"command": ["cat", "db.key"]},
                "stripe": {
                    "vault": {
                        "address": origin,
                        "mount": "kv",
                        "path": "pay/stripe",
                        "field": "key",
                        "token": "file:vault.token",
                        "namespace": "team",
                    }
                },
            }
        }
        config = parse(tree, folder=tmp_path)
        own = wallet(config, clock, Egress(config))
        assert own is not None
        found = {name: (await own.take(name, "acme")).text for name in tree["secrets"]}
        assert found == {
            "crm": CANARY,
            "db": "of-the-file",
            "pager": "of-the-file",
            "stripe": "of-the-vault",
        }
        (tmp_path / "db.key").write_text("of-the-file-2\n")
        again = {name: (await own.take(name, "acme")).text for name in ("db", "pager")}
        assert again == {"db": "of-the-file-2", "pager": "of-the-file"}  # a program is not asked each time
        await clock.advance(300.0)
        assert (await own.take("pager", "acme")).text == "of-the-file-2"
        await own.close()
    assert CANARY not in repr(config)
