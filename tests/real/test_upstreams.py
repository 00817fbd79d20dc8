"""Do real servers answer through one gateway as they do directly, and happen once?"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.passes import Pass, plain, texts
from tests.real.servers import SERVERS
from tests.real.talking import Json, Talk, talking
from tests.real.world import git
from tests.requirements import requirement

NAMES = [server.name for server in SERVERS]
each_server = pytest.mark.parametrize("name", NAMES)
WRITES = {
    "everything": {"gzip-file-as-resource", "toggle-simulated-logging", "toggle-subscriber-updates"},
    "files": {"write_file", "edit_file", "create_directory", "move_file"},
    "memory": {
        *("create_entities", "create_relations", "add_observations"),
        *("delete_entities", "delete_observations", "delete_relations"),
    },
    "thinking": {"sequentialthinking"},
    "git": {"git_commit", "git_add", "git_reset", "git_create_branch", "git_checkout"},
}
REFUSING = {"simulate-research-query"}
"""Wants a task of the handshake era, which plain calls are not: its refusal is compared instead."""


@each_server
def test_every_tool_is_called_with_arguments_that_succeed_directly(name: str, direct: Pass) -> None:
    called = {tool for tool, _ in direct.answers[name]}
    assert called == {tool["name"] for tool in direct.tools[name]}
    assert {tool for tool, answer in direct.answers[name] if plain(answer)["isError"]} <= REFUSING


@requirement("PRO-1", "NAM-5")
@each_server
def test_every_tool_answers_through_the_gateway_as_it_does_directly(
    name: str, direct: Pass, governed: Pass
) -> None:
    for (tool, expected), (_, answer) in zip(direct.answers[name], governed.answers[name], strict=True):
        assert plain(answer) == plain(expected), tool
        assert answer["_meta"]["holdfast/observation"]["tool"].startswith(f"{name}."), tool


@requirement("NAM-5", "CON-8")
@each_server
def test_every_tool_is_shown_as_its_server_describes_it(name: str, direct: Pass, governed: Pass) -> None:
    """With one thing more where something is written: an argument for the key."""

    def described(tools: list[Json]) -> dict[str, Json]:
        return {tool["name"].removeprefix(f"{name}__"): {**tool, "name": ""} for tool in tools}

    shown = described(governed.tools[name])
    keyed = {tool for tool in shown if shown[tool]["inputSchema"]["properties"].pop("idempotency_key", None)}
    assert shown == described(direct.tools[name])
    assert keyed == WRITES.get(name, set())


@requirement("PRO-1")
def test_the_same_calls_leave_the_same_world(direct: Pass, governed: Pass) -> None:
    assert governed.world == direct.world


def test_servers_of_both_eras_are_behind_the_gateway(direct: Pass) -> None:
    assert set(direct.versions.values()) == {"2025-11-25", "2026-07-28"}


async def twice(talk: Talk, tool: str, arguments: Json, between: Callable[[], object] = lambda: None) -> Json:
    """The same call under the same key; the second is answered from what the first did."""
    meta = {"holdfast/key": f"once-{tool}"}
    first = await talk.call(tool, arguments, meta)
    assert plain(first)["isError"] is False
    assert first["_meta"]["holdfast/observation"]["replayed"] is False
    between()
    second = await talk.call(tool, arguments, meta)
    assert plain(second) == plain(first)
    assert second["_meta"]["holdfast/observation"]["replayed"] is True
    return first


@requirement("IDM-1", "IDM-4")
async def test_a_file_is_written_once(governed: Pass, gateway: str, folder: Path) -> None:
    target = folder / "files" / "once.txt"
    arguments = {"path": str(target), "content": "written"}
    async with talking(gateway, folder) as talk:
        await twice(talk, "files__write_file", arguments, lambda: target.write_text("changed since"))
    assert target.read_text() == "changed since"


@requirement("IDM-1", "IDM-4")
async def test_a_commit_is_made_once(governed: Pass, gateway: str, folder: Path) -> None:
    def commits() -> int:
        return int(git(folder, "rev-list", "--count", "HEAD"))

    def stage(line: str) -> None:
        """So that there is something to commit each time."""
        (folder / "repo" / "a.txt").write_text(line)
        git(folder, "add", "a.txt")

    stage("once\n")
    before = commits()
    arguments = {"repo_path": str(folder / "repo"), "message": "Once"}
    async with talking(gateway, folder) as talk:
        await twice(talk, "git__git_commit", arguments, lambda: stage("twice\n"))
    assert commits() == before + 1


@requirement("IDM-1", "IDM-4")
async def test_a_memory_is_made_once(governed: Pass, gateway: str, folder: Path) -> None:
    kept = folder / "memory.jsonl"
    entity = {"name": "Once", "entityType": "thing", "observations": []}
    async with talking(gateway, folder) as talk:
        await twice(talk, "memory__create_entities", {"entities": [entity]}, lambda: kept.write_text(""))
    assert kept.read_text() == ""


@requirement("IDM-1", "IDM-4")
async def test_a_thought_is_had_once(governed: Pass, gateway: str, folder: Path) -> None:
    thought = {"thought": "once", "thoughtNumber": 1, "totalThoughts": 9, "nextThoughtNeeded": True}
    tool = "thinking__sequentialthinking"
    async with talking(gateway, folder) as talk:
        first = await twice(talk, tool, thought)
        later = await talk.call(tool, thought, {"holdfast/key": "another"})
    assert _thoughts(later) == _thoughts(first) + 1


def _thoughts(answer: Json) -> int:
    count: int = json.loads(texts(answer)[0])["thoughtHistoryLength"]
    return count


@requirement("IDM-1", "IDM-4")
async def test_a_switch_is_thrown_once(governed: Pass, gateway: str, folder: Path) -> None:
    tool = "everything__toggle-simulated-logging"
    async with talking(gateway, folder) as talk:
        first = await twice(talk, tool, {})
        back = await talk.call(tool, {}, {"holdfast/key": "another"})
    assert texts(first)[0].startswith("Started")
    assert texts(back)[0].startswith("Stopped")
