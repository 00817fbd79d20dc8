"""Can somebody at a terminal hand on what they hold?"""

import asyncio

import pytest

from holdfast import Gateway, Principal
from holdfast.identity import Unauthenticated
from tests.cli.conftest import Holdfast, desk, holdfast
from tests.requirements import requirement

__all__ = ["desk", "holdfast"]

NARROW = ("--agent", "bot", "--scope", "tickets:read", "--tool", "desk.*", "--resource", "tickets/*")


def caller(token: str) -> Principal:
    """Who a server on the same store takes this for."""

    async def known() -> Principal:
        async with Gateway.open("holdfast.yaml", connect=False) as gateway:
            return gateway.identity.authenticate({"Authorization": f"Bearer {token}"})

    return asyncio.run(known())


@requirement("AUT-2", "NAM-1")
def test_a_token_is_printed_alone_and_works_in_another_process(holdfast: Holdfast) -> None:
    ended = holdfast("delegate", "--as", "ana", *NARROW, "--for", "30m")
    assert ended.code == 0
    token = ended.out.strip()
    assert token.count(".") == 2
    found = caller(token)
    assert (found.id, found.act, found.roles) == ("ana/bot", ("bot",), frozenset())
    assert found.scopes == {"tickets:read"}
    assert found.bounds.tools == frozenset({"desk.*"})
    assert found.bounds.resources == frozenset({"tickets/*"})
    assert "# bot <- ana until " in ended.err
    assert "keys revoke token:hf-" in ended.err


def test_more_than_is_held_is_refused_with_what_is(holdfast: Holdfast) -> None:
    asked = (
        "delegate",
        "--as",
        "eve",
        "--agent",
        "bot",
        "--scope",
        "tickets:read",
        "--scope",
        "tickets:write",
    )
    ended = holdfast(*asked)
    assert (ended.code, ended.out) == (3, "")
    assert "you cannot hand on scope 'tickets:write'" in ended.err
    assert "--narrow would give: scopes tickets:read" in ended.err
    assert holdfast(*asked, "--narrow", "--json").json["scopes"] == ["tickets:read"]


def test_who_handed_it_on_takes_it_back(holdfast: Holdfast) -> None:
    said = holdfast("delegate", "--as", "eve", "--agent", "bot", "--json").json
    assert caller(said["access_token"]).user == "eve"
    ended = holdfast("keys", "revoke", f"token:{said['delegation']}", "--as", "eve")
    assert ended.code == 0
    again = holdfast("keys", "revoke", f"token:{said['delegation']}", "--as", "eve")
    assert again.code == 3
    with pytest.raises(Unauthenticated, match="not accepted"):
        caller(said["access_token"])
