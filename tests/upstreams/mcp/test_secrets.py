"""Does a configured secret ever show?"""

import json
import logging
from dataclasses import replace

import pytest

from holdfast.model.errors import NoEffect
from holdfast.upstreams.mcp.errors import Refused
from holdfast.upstreams.mcp.hidden import Hidden, place
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.requirements import requirement
from tests.upstreams.mcp.callers import SOON_S, Caller, attempt, upstream
from tests.upstreams.mcp.places import rogue_program
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit

CANARY = "kanarienvogel-7391"


@requirement("CON-6")
async def test_a_variable_that_a_program_repeats_shows_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = rogue_program("", API_TOKEN=CANARY)
    with caplog.at_level(logging.DEBUG):
        async with upstream(target) as rogue:
            with pytest.raises(Refused, match="denied for") as told:
                await rogue.invoke(attempt("tool_0", {"how": "say"}, peer=Caller()))
    assert "[hidden]" in str(told.value)
    assert CANARY not in f"{told.value!r} {caplog.text} {target!r} {rogue.last_error}"
    assert "[hidden]" in caplog.text  # it did say it, on both of its outputs


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
@requirement("CON-6")
async def test_a_header_that_a_server_repeats_shows_in_no_log_and_no_error(
    legacy: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(visit: Visit) -> None:
        visit.error(-32603, message=f"bad token {visit.headers['authorization']} at {visit.path}")

    with caplog.at_level(logging.DEBUG):
        async with RogueHttp(act, legacy).open() as open_target:
            headers = {"Authorization": f"Bearer {CANARY}"}
            target = replace(open_target, url=f"{open_target.url}?key={CANARY}-2", headers=headers)
            async with upstream(target) as rogue:
                with pytest.raises(Refused, match="bad token") as told:
                    await rogue.invoke(attempt("tool"))
    assert CANARY not in f"{told.value!r} {told.value.message} {caplog.text}"


@requirement("CON-6")
async def test_what_is_passed_on_of_an_error_shows_no_header_either() -> None:
    async def act(visit: Visit) -> None:
        said = visit.headers["x-key"]
        error = {"code": -32602, "message": f"bad {said}", "data": {"deep": [said]}}
        visit.reply(json.dumps({"jsonrpc": "2.0", "id": visit.message["id"], "error": error}).encode())

    async with (
        RogueHttp(act).open() as target,
        upstream(replace(target, headers={"x-key": CANARY})) as rogue,
    ):
        with pytest.raises(NoEffect) as told:
            await rogue.invoke(attempt("tool"))
    assert told.value.native == {"error": {"code": -32602, "message": "bad [hidden]"}}


@requirement("CON-6")
async def test_a_server_that_cannot_be_reached_is_not_named_with_its_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = f"http://user:{CANARY}@127.0.0.1:9/mcp?key={CANARY}"
    with caplog.at_level(logging.DEBUG):
        shop = McpUpstream("shop", HttpTarget(url, {"x-key": CANARY}))
        shop.start()
        assert not await shop.ready(SOON_S)
        await shop.close()
    assert CANARY not in f"{shop.last_error} {caplog.text} {shop.place}"
    assert shop.place == "http://127.0.0.1:9/mcp"


def test_the_longest_value_is_taken_out_first() -> None:
    hidden = Hidden(frozenset({"abcd", "abcdefgh"}))
    assert hidden.out_of("x abcdefgh y abcd") == "x [hidden] y [hidden]"


def test_a_target_is_named_by_its_program_or_place() -> None:
    assert place(HttpTarget("https://tools.example/mcp?x=1")) == "https://tools.example/mcp"
    assert place(rogue_program()).endswith("python") or "python" in place(rogue_program())
