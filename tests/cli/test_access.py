"""`holdfast keys`, `grants`, `elevate`: does each command do what it says, for those who may?"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Holdfast
from tests.requirements import requirement


@pytest.fixture
def keyed(desk: Path) -> Path:
    """The same desk, where everybody needs a key and there is none yet."""
    tree: dict[str, Any] = yaml.safe_load((desk / "holdfast.yaml").read_text())
    tree["auth"] |= {"mode": "api_key", "agents": {"bot": {"user": "eve"}}}
    (desk / "holdfast.yaml").write_text(yaml.safe_dump(tree))
    return desk


def made(ended: Any) -> str:
    assert ended.code == 0, ended.err
    assert "shown once" in ended.err
    key: str = ended.out.strip()
    return key


@requirement("AUT-1")
def test_the_first_key_is_made_at_the_terminal_and_makes_the_next(
    keyed: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(holdfast("keys", "create", "--user", "ana"))
    again = holdfast("keys", "create", "--user", "ana")
    assert (again.code, "set HOLDFAST_API_KEY" in again.err) == (3, True)
    monkeypatch.setenv("HOLDFAST_API_KEY", first)
    bots = made(holdfast("keys", "create", "--user", "eve", "--agent", "bot", "--expires", "30d"))
    assert "desk.get_ticket" in holdfast("tools").out
    monkeypatch.setenv("HOLDFAST_API_KEY", bots)
    refused = holdfast("keys", "create", "--user", "eve")
    assert (refused.code, "role 'operator'" in refused.err) == (3, True)


@requirement("AUT-1")
def test_keys_are_listed_and_revoked_by_their_id(
    keyed: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(holdfast("keys", "create", "--user", "ana"))
    monkeypatch.setenv("HOLDFAST_API_KEY", first)
    bots = holdfast(
        "keys", "create", "--user", "eve", "--agent", "bot", "--scope", "tickets:read", "--json"
    ).json
    listed = holdfast("keys", "list", "--json").json["keys"]
    assert [(key["person"], key["agent"], key["scopes"]) for key in listed if key["id"] == bots["id"]] == [
        ("eve", "bot", ["tickets:read"])
    ]
    assert "hash" not in listed[0]
    assert bots["id"] in holdfast("keys", "list").out
    assert holdfast("keys", "revoke", bots["id"], "--note", "lost").code == 0
    assert "revoked by ana" in holdfast("keys", "list").out
    assert holdfast("keys", "revoke", bots["id"]).code == 3
    monkeypatch.setenv("HOLDFAST_API_KEY", bots["key"])
    gone = holdfast("tools")
    assert (gone.code, "ask for a new one" in gone.err) == (3, True)


@requirement("AUT-1")
@pytest.mark.parametrize("expires", ["soon", "2031-01-01T00:00:00", "30"])
def test_an_end_that_cannot_be_read_is_refused(keyed: Path, holdfast: Holdfast, expires: str) -> None:
    ended = holdfast("keys", "create", "--user", "ana", "--expires", expires)
    assert (ended.code, repr(expires) in ended.err) == (2, True)


@requirement("AUT-4")
def test_a_grant_is_given_listed_and_taken_back(holdfast: Holdfast) -> None:
    assert "desk.close_all" not in holdfast("tools", "--as", "eve").out
    given = holdfast("grants", "give", "eve", "tickets:**", "--for", "30m", "--note", "night", "--as", "ana")
    assert (given.code, "tickets:** to eve for 30m" in given.out) == (0, True)
    assert "desk.close_all" in holdfast("tools", "--as", "eve").out
    [grant] = holdfast("grants", "list", "--as", "eve", "--json").json["grants"]
    assert (grant["granted_by"], grant["state"], grant["note"]) == ("ana", "held", "night")
    assert holdfast("grants", "revoke", grant["id"], "--as", "ana").code == 0
    assert "revoked" in holdfast("grants", "list", "--as", "ana").out
    assert "desk.close_all" not in holdfast("tools", "--as", "eve").out


@requirement("AUT-4")
def test_nobody_gives_themselves_a_grant(holdfast: Holdfast) -> None:
    own = holdfast("grants", "give", "ana", "mail:send", "--as", "ana")
    assert (own.code, "ask for an elevation" in own.err) == (3, True)


@requirement("AUT-8")
def test_an_elevation_is_held_until_somebody_else_approves_it(holdfast: Holdfast) -> None:
    asked = holdfast("elevate", "tickets:close", "--for", "30m", "--reason", "night", "--as", "ben", "--json")
    assert asked.code == 4
    approval = asked.json["approval"]["id"]
    assert "tickets:close" in holdfast("approvals", approval, "--as", "ana").out
    assert holdfast("approve", approval, "--as", "ben", "--yes").code == 3
    assert holdfast("approve", approval, "--as", "ana", "--yes").code == 0
    [grant] = holdfast("grants", "list", "--as", "ben", "--json").json["grants"]
    assert (grant["state"], grant["approval_id"]) == ("held", approval)
    assert holdfast("elevate", "tickets:close", "--reason", "again", "--as", "ben").code == 1
