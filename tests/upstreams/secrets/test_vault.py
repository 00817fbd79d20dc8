"""Is a KV store of version 2 read as its documentation says, and each of its refusals understood?"""

from typing import Any

import pytest

from holdfast.model.egress.rules import Rules
from holdfast.model.errors import SecretError
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.outgoing import Outgoing
from holdfast.upstreams.secrets.env import EnvSecret
from holdfast.upstreams.secrets.vault import VaultSecret
from tests.requirements import requirement
from tests.upstreams.secrets.vault_server import TOKEN, VaultServer

CANARY = "kanarienvogel-7391"
ENVIRON = {"VAULT_TOKEN": TOKEN}


def outgoing(origin: str) -> Outgoing:
    return Outgoing(Guard(Rules(written=(origin,))))


def vault(
    origin: str, path: str = "crm/token", field: str = "value", environ: dict[str, str] = ENVIRON, **more: Any
) -> VaultSecret:
    mount = more.pop("mount", "secret")
    token = EnvSecret("VAULT_TOKEN", environ)
    return VaultSecret(origin, mount, path, field, token, outgoing(origin), **more)


@requirement("AUT-3")
async def test_the_newest_version_is_read_with_the_token_and_nothing_else_goes_along() -> None:
    server = VaultServer()
    server.put("crm/token", value="an-older-one")
    server.put("crm/token", value=CANARY, other=7)
    async with server.open() as origin:
        found = await vault(origin).read()
    assert (found.text, found.version, found.expires_at) == (CANARY, "2", None)
    [request] = server.asked
    assert request.headers["x-vault-token"] == TOKEN
    assert request.headers["x-vault-request"] == "true"
    assert "x-vault-namespace" not in request.headers


async def test_one_version_can_be_named_and_namespaces_are_kept_apart() -> None:
    server = VaultServer()
    server.put("crm/token", value="version-one", namespace="team-a", mount="kv")
    server.put("crm/token", value="version-two", namespace="team-a", mount="kv")
    server.put("crm/token", value="of-team-b", namespace="team-b", mount="kv")
    async with server.open() as origin:
        assert (await vault(origin, mount="kv", namespace="team-a", version=1).read()).text == "version-one"
        assert (await vault(origin, mount="/kv/", namespace="team-b").read()).text == "of-team-b"
        with pytest.raises(SecretError, match="has no 'kv/crm/token'"):
            await vault(origin, mount="kv").read()


@requirement("AUT-8")
async def test_a_version_that_will_be_deleted_ends_then() -> None:
    server = VaultServer()
    server.put("crm/token", value=CANARY).deletion_time = "2027-01-15T08:10:00.945319214Z"
    async with server.open() as origin:
        found = await vault(origin).read()
    assert found.expires_at == pytest.approx(1_800_000_600.945, abs=0.01)


@pytest.mark.parametrize(
    ("spoil", "says", "passing"),
    [
        (lambda s: s.tokens.clear(), "does not let this gateway read 'secret/crm/token'", False),
        (lambda s: s.hidden.add("crm/token"), "does not let this gateway read", False),
        (lambda s: s.secrets.clear(), "has no 'secret/crm/token'", False),
        (lambda s: s.mounts.clear(), "is there a KV store version 2", False),
        (lambda s: setattr(s.secrets["", "secret", "crm/token"][0], "gone", True), "was deleted", False),
        (lambda s: setattr(s.secrets["", "secret", "crm/token"][0], "destroyed", True), "destroyed", False),
        (lambda s: setattr(s, "sealed", True), "answered 503", True),
    ],
    ids=["token", "policy", "nothing", "mount", "deleted", "destroyed", "sealed"],
)
async def test_each_refusal_says_what_it_is_and_whether_it_passes(
    spoil: Any, says: str, passing: bool
) -> None:
    server = VaultServer()
    server.put("crm/token", value=CANARY)
    spoil(server)
    async with server.open() as origin:
        with pytest.raises(SecretError, match=says) as told:
            await vault(origin).read()
    assert told.value.passing is passing
    assert TOKEN not in str(told.value)
    assert CANARY not in str(told.value)


async def test_a_field_that_is_not_there_is_told_with_those_that_are() -> None:
    server = VaultServer()
    server.put("crm/token", user="bot", password=CANARY, port=7)
    async with server.open() as origin:
        assert (await vault(origin, field="password").read()).text == CANARY
        for field in ("value", "port"):
            with pytest.raises(SecretError, match="known are 'password', 'port', 'user'") as told:
                await vault(origin, field=field).read()
            assert CANARY not in str(told.value)


async def test_a_path_cannot_climb_or_carry_a_query() -> None:
    server = VaultServer()
    server.put("a b?version=9#x/c", value=CANARY)
    async with server.open() as origin:
        assert (await vault(origin, path="../a b?version=9#x/./c").read()).text == CANARY


async def test_a_vault_that_is_away_may_be_there_in_a_moment_and_a_missing_token_is_told() -> None:
    async with VaultServer().open() as origin:
        with pytest.raises(SecretError, match="the vault's token cannot be had: the environment variable"):
            await vault(origin, environ={}).read()
        with pytest.raises(SecretError, match="cannot be asked"):
            await vault(origin, environ={"VAULT_TOKEN": "two\nlines"}).read()
    with pytest.raises(SecretError, match="cannot be asked: cannot connect") as told:
        await vault(origin).read()
    assert told.value.passing


@requirement("POL-6")
async def test_a_vault_that_nobody_named_is_not_connected_to() -> None:
    server = VaultServer()
    server.put("crm/token", value=CANARY)
    async with server.open() as origin:
        elsewhere = Outgoing(Guard(Rules(written=("https://vault.example",))))
        secret = VaultSecret(
            origin, "secret", "crm/token", "value", EnvSecret("VAULT_TOKEN", ENVIRON), elsewhere
        )
        with pytest.raises(SecretError) as told:
            await secret.read()
    assert not told.value.passing
    assert server.asked == []
