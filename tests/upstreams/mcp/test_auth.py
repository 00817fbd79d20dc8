"""Is each request made in the name of the principal it is for?"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from holdfast.model.errors import Code, NoEffect
from tests.requirements import requirement
from tests.upstreams.mcp.callers import Caller, attempt, upstream
from tests.upstreams.mcp.places import workshop_http
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit
from tests.upstreams.mcp.workshop import Workshop


class Doorman:
    """Gives each principal a token of its own, and a fresh one after a challenge."""

    def __init__(self, again: bool = True) -> None:
        self.again = again
        self.turn: dict[str, int] = {}
        self.challenges: list[tuple[str, int, str]] = []

    async def headers(self, principal: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {principal or 'gateway'}-{self.turn.get(principal, 0)}"}

    async def close(self) -> None: ...

    async def challenged(self, principal: str, status: int, www_authenticate: str) -> bool:
        self.challenges.append((principal, status, www_authenticate))
        self.turn[principal] = self.turn.get(principal, 0) + 1
        return self.again


async def shown(visit: Visit) -> None:
    text = visit.headers["authorization"]
    visit.answer(content=[], structuredContent={"text": text, "session": visit.headers.get("mcp-session-id")})


def last_token(rogue: RogueHttp) -> str:
    """What the last call came with; its answer repeats it, and nobody is shown that."""
    return next(v.headers["authorization"] for v in reversed(rogue.visits) if v.method == "tools/call")


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
@requirement("PRO-1")
async def test_a_call_carries_its_principals_own_token(legacy: bool) -> None:
    rogue = RogueHttp(shown, legacy)
    async with rogue.open() as target, upstream(replace(target, auth=Doorman())) as shop:
        for principal in ("ada", "bob"):
            answer = await shop.invoke(attempt("tool", principal=principal))
            assert last_token(rogue) == f"Bearer acme/{principal}-0"
            assert answer.data["text"] == "Bearer [hidden]"


async def test_a_refused_token_is_renewed_once() -> None:
    async def act(visit: Visit) -> None:
        if visit.headers["authorization"].endswith("-0"):
            visit.reply(b"", 401, www_authenticate='Bearer error="invalid_token"')
        else:
            await shown(visit)

    doorman, rogue = Doorman(), RogueHttp(act)
    async with rogue.open() as target, upstream(replace(target, auth=doorman)) as shop:
        await shop.invoke(attempt("tool", principal="ada"))
    assert last_token(rogue) == "Bearer acme/ada-1"
    assert doorman.challenges == [("acme/ada", 401, 'Bearer error="invalid_token"')]


@pytest.mark.parametrize("again", [True, False])
@requirement("IDM-5")
async def test_a_token_that_stays_refused_is_a_refusal_without_effect(again: bool) -> None:
    async def act(visit: Visit) -> None:
        visit.reply(b"", 403)

    async with RogueHttp(act).open() as target, upstream(replace(target, auth=Doorman(again))) as shop:
        with pytest.raises(NoEffect) as told:
            await shop.invoke(attempt("tool", principal="ada"))
    assert told.value.code is Code.PERMISSION_DENIED


@requirement("IDM-5")
async def test_credentials_that_cannot_be_had_leave_no_effect_and_others_alone() -> None:
    class Locked(Doorman):
        async def headers(self, principal: str) -> Mapping[str, str]:
            if principal == "acme/ada":
                raise OSError("the safe is locked")
            return await super().headers(principal)

    rogue = RogueHttp(shown)
    async with rogue.open() as target, upstream(replace(target, auth=Locked())) as shop:
        with pytest.raises(NoEffect, match="no credentials"):
            await shop.invoke(attempt("tool", principal="ada"))
        await shop.invoke(attempt("tool", principal="bob"))
        assert last_token(rogue) == "Bearer acme/bob-0"
        assert shop.starts == 1


@requirement("PRO-1")
async def test_a_session_of_the_handshake_era_is_one_principals_alone() -> None:
    async with workshop_http(Workshop(), "legacy") as (target, seen):
        async with upstream(replace(target, auth=Doorman())) as shop:
            for principal in ("ada", "bob", "ada", "bob"):
                await shop.invoke(attempt("echo", principal=principal, peer=Caller(principal)))
        users: dict[str, set[str]] = {}
        for _, _, headers in seen.requests:
            if "mcp-session-id" in headers:
                users.setdefault(headers["mcp-session-id"], set()).add(headers["authorization"])
    assert sorted(len(tokens) for tokens in users.values()) == [1, 1, 1]


async def test_configured_headers_go_along_with_every_request() -> None:
    async with (
        workshop_http(Workshop()) as (target, seen),
        upstream(replace(target, headers={"X-Team": "blue"})) as shop,
    ):
        await shop.invoke(attempt("echo"))
        await shop.invoke(attempt("echo", peer=Caller()))
    assert {headers.get("x-team") for _, _, headers in seen.requests} == {"blue"}
