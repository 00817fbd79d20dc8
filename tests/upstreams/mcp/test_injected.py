"""Do secrets reach the server they are for, each with the right request, and come back from nowhere?"""

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.contract import Credential
from holdfast.model.errors import Code, NoEffect, SecretError
from holdfast.ports import Injected
from holdfast.testing import ManualClock
from holdfast.upstreams.mcp.errors import Refused
from holdfast.upstreams.secrets.opening import Standing
from holdfast.upstreams.secrets.wallet import Wallet
from tests.polling import until
from tests.requirements import requirement
from tests.upstreams.mcp.callers import Caller, attempt, upstream
from tests.upstreams.mcp.places import rogue_program, workshop_sse
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit
from tests.upstreams.mcp.workshop import Workshop
from tests.upstreams.secrets.kept import Kept, wallet

CANARY = "kanarienvogel-7391"
NEXT = "der-naechste-vogel-7392"


def standing(own: Wallet, **templates: str) -> Standing:
    return Standing(own, {name.replace("_", "-"): text for name, text in templates.items()})


async def injected(own: Wallet, name: str, place: str, **said: str) -> Injected:
    credential = Credential.model_validate({"secret": "crm", "as": place, "name": name, **said})
    return Injected(
        credential=credential,
        secret=await own.take("crm", "acme"),
        renew=lambda refused: own.renew("crm", refused),
    )


def calls(rogue: RogueHttp) -> list[Visit]:
    return [visit for visit in rogue.visits if visit.method == "tools/call"]


async def done(visit: Visit) -> None:
    visit.answer(content=[], structuredContent={"text": "done"})


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
@requirement("AUT-3", "AUT-8")
async def test_a_configured_header_is_filled_in_with_every_request(legacy: bool) -> None:
    clock, kept, rogue = ManualClock(), Kept(CANARY), RogueHttp(done, legacy)
    own = wallet(clock, crm=kept)
    async with rogue.open() as target:
        target = replace(target, secrets=standing(own, authorization="Bearer ${secret:crm}"))
        async with upstream(target) as shop:
            await shop.invoke(attempt("tool"))
            kept.text = NEXT
            await clock.advance(300.0)
            await shop.invoke(attempt("tool"))
            assert shop.starts == 1  # rotated without a restart
        assert CANARY not in f"{target!r}"
    assert [visit.headers["authorization"] for visit in calls(rogue)] == [
        f"Bearer {CANARY}",
        f"Bearer {NEXT}",
    ]
    assert all("authorization" in visit.headers for visit in rogue.visits)


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
@requirement("EXE-2")
async def test_a_401_makes_the_secret_be_read_anew_once_and_the_same_request_go_again(legacy: bool) -> None:
    kept = Kept(CANARY)
    own = wallet(ManualClock(), crm=kept)

    async def act(visit: Visit) -> None:
        if visit.headers["authorization"] == f"Bearer {CANARY}":
            kept.text = NEXT
            visit.reply(b"", 401)
        else:
            await done(visit)

    rogue = RogueHttp(act, legacy)
    async with rogue.open() as target:
        secrets = standing(own, authorization="Bearer ${secret:crm}")
        async with upstream(replace(target, secrets=secrets)) as shop:
            answer = await shop.invoke(attempt("tool", key="k-1"))
    assert answer.data == {"text": "done"}
    first, second = calls(rogue)
    assert first.message == second.message  # the same key, and all else
    assert second.headers["authorization"] == f"Bearer {NEXT}"


@pytest.mark.parametrize("changes", [True, False])
@requirement("EXE-2", "IDM-5")
async def test_a_second_401_is_a_refusal_without_effect(changes: bool) -> None:
    kept = Kept(CANARY)
    own = wallet(ManualClock(), crm=kept)

    async def act(visit: Visit) -> None:
        kept.text = f"{CANARY}-{len(rogue.visits)}" if changes else CANARY
        visit.error(-32001, 401, "token refused")

    rogue = RogueHttp(act)
    async with rogue.open() as target, upstream(target) as shop:
        given = (await injected(own, "X-Token", "header"),)
        with pytest.raises(NoEffect, match="token refused") as told:
            await shop.invoke(attempt("tool", credentials=given))
    assert told.value.code is Code.PERMISSION_DENIED
    assert len(calls(rogue)) == (2 if changes else 1)  # what was refused is not shown again


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
@requirement("AUT-3")
async def test_a_contracts_header_goes_with_its_call_and_no_other(legacy: bool) -> None:
    own, rogue = wallet(ManualClock(), crm=Kept(CANARY)), RogueHttp(done, legacy)
    async with rogue.open() as target, upstream(target) as shop:
        given = (await injected(own, "Authorization", "header", prefix="Bearer "),)
        await shop.invoke(attempt("tool", credentials=given))
        await shop.invoke(attempt("other"))
    assert [visit.headers.get("authorization") for visit in calls(rogue)] == [f"Bearer {CANARY}", None]
    assert sum("authorization" in visit.headers for visit in rogue.visits) == 1


async def test_over_the_oldest_transport_a_header_goes_along_too() -> None:
    own = wallet(ManualClock(), crm=Kept(CANARY))
    async with workshop_sse(Workshop()) as target, upstream(target) as shop:
        given = (await injected(own, "X-Token", "header"),)
        answer = await shop.invoke(attempt("echo", {"text": "hi"}, credentials=given))
    assert "hi" in json.dumps(answer.native)


@requirement("AUT-3")
async def test_an_argument_of_the_contract_is_added_where_the_server_wants_it() -> None:
    own, rogue = wallet(ManualClock(), crm=Kept(CANARY)), RogueHttp(done)
    async with rogue.open() as target, upstream(target) as shop:
        arguments = {"q": "shoes"}
        given = (await injected(own, "api_key", "argument"),)
        await shop.invoke(attempt("tool", arguments, credentials=given))
    assert calls(rogue)[0].message["params"]["arguments"] == {"q": "shoes", "api_key": CANARY}
    assert arguments == {"q": "shoes"}


@pytest.mark.parametrize("spelt", [CANARY, f"Bearer {CANARY}", "a2FuYXJpZW52b2dlbC03Mzkx", f"<{CANARY}>"])
@requirement("AUT-3")
async def test_what_a_server_says_shows_nobody_the_secret_it_was_told(
    spelt: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In its answer, in an error, in what it tells and asks meanwhile, in its list of tools."""

    async def act(visit: Visit) -> None:
        if visit.method == "tools/list":
            tool = {"name": "tool", "description": f"uses {spelt}", "inputSchema": {"type": "object"}}
            return visit.answer(tools=[tool], resultType="complete")
        if visit.message["params"]["name"] == "fails":
            return visit.error(-32602, message=f"bad {spelt}")
        visit.stream()
        note = {"level": "error", "data": {"deep": [spelt]}}
        visit.event({"jsonrpc": "2.0", "method": "notifications/message", "params": note})
        result = {
            "content": [{"type": "text", "text": spelt}],
            "structuredContent": {spelt: [1, {"x": spelt}]},
        }
        visit.event({"jsonrpc": "2.0", "id": visit.message["id"], "result": result})
        visit.writer.close()
        return None

    own, caller = wallet(ManualClock(), crm=Kept(CANARY)), Caller(log_level="debug")
    seen: list[Any] = []
    with caplog.at_level(logging.DEBUG):
        async with RogueHttp(act).open() as target:
            secrets = standing(own, x_token="${secret:crm}")
            async with upstream(replace(target, secrets=secrets)) as shop:
                answer = await shop.invoke(attempt("tool", peer=caller))
                seen += [answer.data, answer.native, caller.told, await shop.snapshot(20.0)]
                with pytest.raises(NoEffect) as told:
                    await shop.invoke(attempt("fails"))
                seen += [str(told.value), told.value.native, shop.last_error, repr(shop.target)]
    assert caller.told
    text = f"{seen!r} {caplog.text}"
    assert spelt not in text
    assert CANARY not in text
    assert "[hidden]" in f"{answer.data}"


async def test_an_answer_without_the_secret_is_the_very_same() -> None:
    big = 2**80

    async def act(visit: Visit) -> None:
        visit.answer(content=[], structuredContent={"n": big, "nested": [None, True, 1.5, "x"]})

    secrets = standing(wallet(ManualClock(), crm=Kept(CANARY)), x_token="${secret:crm}")
    async with RogueHttp(act).open() as target, upstream(replace(target, secrets=secrets)) as shop:
        assert (await shop.invoke(attempt("tool"))).data == {"n": big, "nested": [None, True, 1.5, "x"]}


@requirement("AUT-8")
async def test_a_secret_that_cannot_be_had_stops_the_call_before_anything_is_sent() -> None:
    clock, kept, rogue = ManualClock(), Kept(CANARY), RogueHttp(done)
    secrets = standing(wallet(clock, crm=kept), x_token="${secret:crm}")
    async with rogue.open() as target, upstream(replace(target, secrets=secrets)) as shop:
        kept.fails = SecretError("it was deleted")
        await clock.advance(300.0)
        with pytest.raises(NoEffect, match="issued anew"):
            await shop.invoke(attempt("tool"))
        assert calls(rogue) == []
        kept.fails = None
        await shop.invoke(attempt("tool"))
        assert shop.starts == 1


# --- programs -----------------------------------------------------------------------------


async def environment(shop: Any, *, credentials: tuple[Injected, ...] = ()) -> Mapping[str, Any]:
    """Which process of the program answers, and how long its secret is."""
    answer = await shop.invoke(attempt("tool_0", {"how": "which"}, credentials=credentials))
    found: Mapping[str, Any] = answer.data
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@requirement("AUT-3", "AUT-8")
async def test_a_configured_variable_is_filled_in_at_the_start_and_a_changed_one_means_a_new_process() -> (
    None
):
    clock, kept = ManualClock(), Kept(CANARY)
    own = wallet(clock, crm=kept)
    program = replace(rogue_program(), secrets=Standing(own, {"API_TOKEN": "${secret:crm}"}))
    async with upstream(program) as shop:
        first = await environment(shop)
        assert first["length"] == len(CANARY)
        assert (await environment(shop))["pid"] == first["pid"]
        kept.text = NEXT
        assert (await environment(shop))["pid"] == first["pid"]  # nobody has looked yet
        await clock.advance(300.0)
        second = await environment(shop)
    assert second["length"] == len(NEXT)
    assert second["pid"] != first["pid"]


@requirement("AUT-8")
async def test_a_running_call_keeps_its_process_until_it_is_over(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    clock, kept = ManualClock(), Kept(CANARY)
    own = wallet(clock, crm=kept)
    program = replace(rogue_program(), secrets=Standing(own, {"API_TOKEN": "${secret:crm}"}))
    async with upstream(program) as shop:
        first = await environment(shop)
        held = attempt("tool_0", {"how": "wait", "pipe": str(pipe)})
        running = asyncio.ensure_future(shop.invoke(held))
        released = await asyncio.to_thread(pipe.open, "w")  # once the process waits for it
        kept.text = NEXT
        await clock.advance(300.0)
        second = await environment(shop)
        assert second["pid"] != first["pid"]
        assert not running.done()
        released.close()
        assert (await running).data["pid"] == first["pid"]
        await until(lambda: not alive(first["pid"]))
        assert (await environment(shop))["pid"] == second["pid"]


async def test_closing_ends_the_processes_that_others_have_left_too(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    clock, kept = ManualClock(), Kept(CANARY)
    own = wallet(clock, crm=kept)
    program = replace(rogue_program(), secrets=Standing(own, {"API_TOKEN": "${secret:crm}"}))
    async with upstream(program) as shop:
        first = await environment(shop)
        held = attempt("tool_0", {"how": "wait", "pipe": str(pipe)})
        running = asyncio.ensure_future(shop.invoke(held))
        released = await asyncio.to_thread(pipe.open, "w")
        kept.text = NEXT
        await clock.advance(300.0)
        pids = [first["pid"], (await environment(shop))["pid"]]
        given = (await injected(own, "OTHER", "env"),)
        pids.append((await environment(shop, credentials=given))["pid"])
    assert len(set(pids)) == 3
    assert not any(map(alive, pids))
    with pytest.raises(ConnectionError):
        await running
    released.close()


@requirement("AUT-3", "AUT-6")
async def test_a_contracts_variable_is_in_a_process_that_no_other_call_gets() -> None:
    own = wallet(ManualClock(), crm=Kept(CANARY))
    async with upstream(rogue_program()) as shop:
        plain = await environment(shop)
        assert plain["length"] == 0
        given = (await injected(own, "API_TOKEN", "env"),)
        dressed = await environment(shop, credentials=given)
        assert dressed["length"] == len(CANARY)
        assert (await environment(shop, credentials=given))["pid"] == dressed["pid"]
        again = await environment(shop)
        assert (again["pid"], again["length"]) == (plain["pid"], 0)


@requirement("AUT-3")
async def test_what_a_program_repeats_of_it_shows_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    own = wallet(ManualClock(), crm=Kept(CANARY))
    with caplog.at_level(logging.DEBUG):
        async with upstream(rogue_program()) as shop:
            given = (await injected(own, "API_TOKEN", "env"),)
            with pytest.raises(Refused, match="denied for") as told:
                await shop.invoke(attempt("tool_0", {"how": "say"}, peer=Caller(), credentials=given))
    assert CANARY not in f"{told.value!r} {caplog.text} {shop.last_error} {given!r}"
    assert "[hidden]" in str(told.value)


@pytest.mark.parametrize(("place", "says"), [("header", "has no headers"), ("env", "is no program")])
async def test_a_place_the_upstream_does_not_have_is_refused_before_anything_is_sent(
    place: str, says: str
) -> None:
    own, rogue = wallet(ManualClock(), crm=Kept(CANARY)), RogueHttp(done)
    given = (await injected(own, "API_TOKEN", place),)
    if place == "header":
        async with upstream(rogue_program()) as shop:
            with pytest.raises(NoEffect, match=says):
                await shop.invoke(attempt("tool_0", {"how": "which"}, credentials=given))
        return
    async with rogue.open() as target, upstream(target) as shop:
        with pytest.raises(NoEffect, match=says):
            await shop.invoke(attempt("tool", credentials=given))
    assert calls(rogue) == []
