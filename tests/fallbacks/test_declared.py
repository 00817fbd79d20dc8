"""Is what the configuration says of fallbacks checked before a call depends on it? EXE-4."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Effect, Floor, Status, Undo, testing, tool
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.config import parse
from holdfast.gateway import Gateway
from holdfast.model.errors import ConfigError
from holdfast.model.vocabulary import ToolStatus
from holdfast.testing import ManualClock
from tests.fallbacks.post import ANA, LOOK, SEND, Post, opened, send, tried
from tests.requirements import requirement


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"a": {"tools": ["x.a"]}}, "fallbacks.a: this falls back on nothing; name a second tool"),
        ({"a": {"tools": ["x.a", "x.a"]}}, "fallbacks.a.tools.1: 'x.a' has a place under 'a' already"),
        (
            {"a": {"tools": ["x.a", "x.b"]}, "b": {"tools": ["x.c", "x.b"]}},
            "fallbacks.b.tools.1: 'x.b' has a",
        ),
        ({"a": {"tools": ["x", "x.b"]}}, "fallbacks.a.tools.0: 'x' is no name of a tool"),
        (
            {"a": {"tools": [{"tool": "x.a", "confidence": 1}, "x.b"]}},
            "the first of 'tools' is called as it is",
        ),
        ({"a": "nothing"}, "fallbacks.a: must be a mapping of keys"),
        ({"a": {"tools": ["x.a", "x.b"], "then": "hope"}}, "fallbacks.a.then: must be 'refuse'"),
    ],
)
def test_a_fallback_that_cannot_be_used_is_told_with_its_place(said: Any, fault: str) -> None:
    with pytest.raises(ConfigError, match="fallbacks") as told:
        parse({"fallbacks": said})
    assert fault in str(told.value)


def test_none_is_said_on_purpose() -> None:
    assert parse({"fallbacks": {"a": "none"}}).fallbacks == {"a": None}


@requirement("EXE-4")
@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"facts": {"tools": ["mail.look", "backup.post"]}}, "'mail.look' reads and 'backup.post' writes"),
        ({"send-message": {**SEND, "then": "stale"}}, "'then: stale' is for reads"),
        ({"facts": {"tools": ["backup.look"], "then": "stale"}}, "give it a 'cache_ttl_s'"),
        ({"facts": {"tools": ["mail.look"], "then": "person"}}, "'then: person' is for writes"),
    ],
)
async def test_a_gateway_does_not_start_with_a_fallback_that_would_do_harm(
    tmp_path: Path, post: Post, clock: ManualClock, said: Any, fault: str
) -> None:
    with pytest.raises(ConfigError, match=fault):
        async with opened("memory", tmp_path, post, clock, said):
            pass


async def test_arguments_that_cannot_be_compiled_are_told(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    said = {"send-message": {"tools": ["mail.send", {"tool": "backup.post", "arguments": {"x": "=arg.to"}}]}}
    with pytest.raises(ConfigError, match=r"fallbacks\.send-message\.tools\.1\.arguments: .* unknown names"):
        async with opened("memory", tmp_path, post, clock, said):
            pass


async def test_doctor_is_told_of_tools_that_are_not_there_or_have_another_tag(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    said = {"message": {"tools": ["mail.send", "nowhere.send"]}, "facts": LOOK}
    async with opened("memory", tmp_path, post, clock, said) as gateway:
        told = [finding for finding in gateway.findings() if "fallbacks" in finding]
    assert told == [
        "fallbacks.message: 'mail.send' has no tag 'message'; add it to its 'tags'",
        "fallbacks.message: there is no tool 'nowhere.send', so it is passed over",
    ]


@tool(
    effect=Effect.HIGH_RISK_EXTERNAL,
    undo=Undo.NONE,
    floor=Floor.OPERATOR,
    manifest=[("money", "CREATE", "account")],
    idempotency={},
    preview={},
    rollback_plan="ask for it back",
    verification={"target": "account", "expected": {"money": 1}, "delay_s": 60},
    tags=["pay-out"],
)
async def pay(account: str) -> str:
    """Pay somebody."""
    return "paid"


@requirement("EXE-4")
@pytest.mark.parametrize(
    ("said", "told"),
    [({}, True), ({"pay-out": "none"}, False), ({"pay-out": {"tools": ["test.pay", "b.pay"]}}, False)],
)
async def test_a_critical_capability_declares_its_fallbacks_or_none(said: Any, told: bool) -> None:
    async with testing.gateway(pay, config={"fallbacks": said}) as gateway:
        found = [finding for finding in gateway.findings() if "critical capability" in finding]
    assert bool(found) is told
    if told:
        assert "name its tools under 'fallbacks.pay-out', or write 'none' there" in found[0]


def standing(gateway: Gateway, name: str, status: ToolStatus) -> None:
    catalog = gateway._ports.catalog
    assert isinstance(catalog, MemoryCatalog)
    assert catalog.set_status(name, "1.0.0", status)


@requirement("EXE-4")
@pytest.mark.parametrize("status", [ToolStatus.QUARANTINED, ToolStatus.UNAVAILABLE, ToolStatus.REVOKED])
async def test_a_tool_that_was_taken_out_of_service_falls_back_at_once(
    tmp_path: Path, post: Post, clock: ManualClock, status: ToolStatus
) -> None:
    async with opened("memory", tmp_path, post, clock) as gateway:
        standing(gateway, "mail.send", status)
        seen = await send(gateway)
        assert (seen.status, seen.tool, post.asked) == (Status.DONE, "backup.post", ["backup"])
        assert [name for name, _ in tried(seen)] == ["mail.send"]


async def test_a_tool_that_was_halted_falls_back(tmp_path: Path, post: Post, clock: ManualClock) -> None:
    async with opened("memory", tmp_path, post, clock) as gateway:
        operator = replace(ANA, user="olga", roles=frozenset({"operator"}))
        await gateway.halt(operator, "mail.send", "broken")
        seen = await send(gateway)
        assert (seen.tool, tried(seen)) == ("backup.post", [("mail.send", Code.TOOL_UNAVAILABLE.value)])


async def test_a_rate_that_is_used_up_falls_back(tmp_path: Path, post: Post, clock: ManualClock) -> None:
    rates = [{"per": "tool", "match": "mail.send", "calls": 1, "per_s": 3600}]
    async with opened("memory", tmp_path, post, clock, limits={"rates": rates}) as gateway:
        assert (await send(gateway, "one")).tool == "mail.send"
        seen = await send(gateway, "two")
        assert (seen.tool, tried(seen)) == ("backup.post", [("mail.send", Code.RATE_LIMITED.value)])


async def test_too_many_proposals_at_once_are_no_reason_to_ask_another_tool(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    limits = {"ingress": {"rate": 0.001, "burst": 1}}
    async with opened("memory", tmp_path, post, clock, limits=limits) as gateway:
        await send(gateway, "one")
        seen = await send(gateway, "two")
        assert (seen.code, seen.fallback, post.senders) == (Code.RATE_LIMITED, None, ["mail"])


@requirement("TEL-2")
async def test_the_level_that_answered_is_counted(tmp_path: Path, post: Post, clock: ManualClock) -> None:
    async with opened("memory", tmp_path, post, clock) as gateway:
        await send(gateway, "one")
        post.mood["mail"] = "DEPENDENCY_UNAVAILABLE"
        await send(gateway, "two")
        told = (await gateway._look()).text().decode().splitlines()
    counted = {line.partition("le=")[2] for line in told if line.startswith("tool_fallback_level_bucket{")}
    assert {'"0.0"} 1.0', '"1.0"} 2.0'} <= counted
    assert any('capability="send-message"' in line for line in told)


async def test_a_tool_says_what_it_falls_back_on_to_those_who_may_use_that(
    tmp_path: Path, post: Post, clock: ManualClock
) -> None:
    async with opened("memory", tmp_path, post, clock) as gateway:
        said = gateway.fallbacks.explained(ANA, "mail.send")
        little = gateway.fallbacks.explained(replace(ANA, scopes=frozenset({"mail:send"})), "mail.send")
    assert said == ["level 0 of 'send-message': mail.send > backup.post > pigeon.send"]
    assert little == ["level 0 of 'send-message': mail.send > backup.post"]
