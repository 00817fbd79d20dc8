"""Does the official inspector find and call the tools of every server, over stdio and over HTTP?"""

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import configured
from tests.real.inspecting import inspect
from tests.real.passes import Pass, plain
from tests.real.servers import SERVERS, Server
from tests.requirements import requirement

AT_ONCE = 2
"""Inspectors at a time; each starts a program or two."""
CALLED = {"memory": "read_graph"}
"""Which tool is called; the first one of `calls/` where nothing is said."""
HISTORY = re.compile(r"(thoughtHistoryLength\W+)\d+")
"""Counts what others thought before, and a server that was just started knows none."""

Targets = Mapping[str, tuple[str, ...]]


async def answers(targets: Targets, folder: Path, page: str, prefix: str) -> dict[str, Any]:
    """What one tool of every server answers."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(server: Server) -> Any:
        calls = server.calls(folder=str(folder), page=page)
        tool, arguments = next(call for call in calls if call[0] == CALLED.get(server.name, call[0]))
        named = prefix.format(server.name) + tool
        async with gate:
            said = await inspect(
                targets[server.name],
                *("--method", "tools/call", "--tool-name", named, "--tool-args-json", json.dumps(arguments)),
            )
        return json.loads(HISTORY.sub(r"\1 0", json.dumps(plain(said["result"]))))

    found = await asyncio.gather(*map(one, SERVERS))
    return dict(zip((server.name for server in SERVERS), found, strict=True))


def started_by(file: Path, command: tuple[str, ...], variables: Mapping[str, str]) -> tuple[str, ...]:
    """As a client's own file names a server that it starts."""
    entry = {"command": command[0], "args": command[1:], "env": dict(variables)}
    file.write_text(json.dumps({"mcpServers": {"one": entry}}))
    return "--config", str(file), "--server", "one"


def holdfast_stdio(config: Path) -> tuple[str, ...]:
    command = (sys.executable, "-m", "holdfast", "stdio", "--config", str(config))
    return started_by(config.with_name("servers.json"), command, {})


def names(listed: Mapping[str, Any]) -> set[str]:
    return {tool["name"] for tool in listed["result"]["tools"]}


def all_names(done: Pass) -> set[str]:
    return {tool["name"] for tools in done.tools.values() for tool in tools}


@requirement("PRO-1")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_lists_every_tool_over_http(era: str, governed: Pass, gateway: str) -> None:
    listed = await inspect((gateway,), "--protocol-era", era, "--method", "tools/list")
    assert names(listed) == all_names(governed)


@requirement("PRO-1")
async def test_the_inspector_lists_every_tool_over_stdio(
    governed: Pass, folder: Path, tmp_path: Path
) -> None:
    config = configured(tmp_path / "all", folder, SERVERS)
    assert names(await inspect(holdfast_stdio(config), "--method", "tools/list")) == all_names(governed)


@pytest.mark.soak
@requirement("PRO-1")
async def test_the_inspector_gets_the_same_answers_directly_over_http_and_over_stdio(
    governed: Pass, gateway: str, folder: Path, page: str, tmp_path: Path
) -> None:
    straight: dict[str, tuple[str, ...]] = {}
    piped: dict[str, tuple[str, ...]] = {}
    for server in SERVERS:
        file = tmp_path / f"{server.name}.json"
        straight[server.name] = started_by(file, server.command(folder), server.variables(folder))
        # a gateway for each: seven times all seven would only take longer
        piped[server.name] = holdfast_stdio(configured(tmp_path / server.name, folder, (server,)))
    expected = await answers(straight, folder, page, "")
    assert await answers(dict.fromkeys(expected, (gateway,)), folder, page, "{}__") == expected
    assert await answers(piped, folder, page, "{}__") == expected
