"""Is whoever holds a token at a terminal, or starts a client with one, known by it?"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.cli.session import recognize
from holdfast.cli.stdio import client
from holdfast.gateway import Gateway
from holdfast.identity.keys import hash_chosen
from tests.cli.conftest import Ended, Holdfast
from tests.cli.conftest import holdfast as holdfast
from tests.oidc.provider import ELSEWHERE, GATEWAY, Provider
from tests.requirements import requirement

PIECE = 16
UNSET = (
    "HOLDFAST_CONFIG",
    "HOLDFAST_DEBUG",
    "HOLDFAST_API_KEY",
    "HOLDFAST_APPROVER_SECRET",
    "HOLDFAST_TOKEN",
)


@pytest.fixture
def desk(issuer: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    people: dict[str, Any] = {
        "alice": {"scopes": ["tickets:*", "notes:*"]},
        "petra": {"scopes": ["tickets:*"], "approver_secret": hash_chosen("hunter2")},
    }
    auth = {
        "mode": "jwt",
        "issuer": issuer.url,
        "audience": GATEWAY,
        "people": people,
        "claims": {"scopes": []},
    }
    tree = {"upstreams": {"desk": {"functions": "tests.cli.desk_tools:TOOLS"}}, "auth": auth}
    (tmp_path / "holdfast.yaml").write_text(yaml.safe_dump(tree))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def listed(ended: Ended) -> bool:
    return ended.code == 0 and "desk." in ended.out


@requirement("AUT-1")
def test_a_command_is_given_by_whoever_the_token_says(
    holdfast: Holdfast, issuer: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = holdfast("tools")
    assert (without.code, "set HOLDFAST_TOKEN to your token" in without.err) == (3, True)
    monkeypatch.setenv("HOLDFAST_TOKEN", asyncio.run(issuer.of_person("alice")))
    assert listed(holdfast("tools"))
    other = holdfast("tools", "--as", "petra")
    assert (other.code, "belongs to 'alice'" in other.err) == (3, True)


@requirement("AUT-1")
def test_at_the_terminal_it_is_said_what_is_wrong_with_a_token(
    holdfast: Holdfast, issuer: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = asyncio.run(issuer.of_person("alice", resource=ELSEWHERE))
    monkeypatch.setenv("HOLDFAST_TOKEN", foreign)
    refused = holdfast("tools")
    assert refused.code == 3
    assert f"your credential is not accepted: its audience is '{ELSEWHERE}'" in refused.err
    assert foreign[-PIECE:] not in refused.err + refused.out


def test_the_doctor_says_whether_the_issuers_keys_can_be_had(holdfast: Holdfast, desk: Path) -> None:
    assert "2 keys of 'http://127.0.0.1:" in holdfast("doctor").out
    tree = yaml.safe_load((desk / "holdfast.yaml").read_text())
    tree["auth"]["jwks_url"] = f"{tree['auth']['issuer']}/nothing/there"
    (desk / "holdfast.yaml").write_text(yaml.safe_dump(tree))
    ended = holdfast("doctor")
    assert "so no token is accepted" in ended.out
    assert ended.code != 0


@requirement("APR-2")
def test_an_approver_secret_is_enough_at_the_terminal(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_APPROVER_SECRET", "hunter2")
    assert listed(holdfast("tools", "--as", "petra"))
    monkeypatch.setenv("HOLDFAST_APPROVER_SECRET", "hunter3")
    assert holdfast("tools", "--as", "petra").code == 3


@requirement("AUT-1")
async def test_a_client_over_stdio_stays_no_longer_than_its_token_lasts(
    desk: Path, issuer: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", await issuer.of_person("alice"))
    async with Gateway.open(desk / "holdfast.yaml", connect=False) as gateway:
        await recognize(gateway.identity)
        who = client(gateway, None, "stdio")
        assert (who.user, who.agent) == ("alice", "notebook")
        assert 0 < who.bounds.until - gateway.identity.now() <= 630
