"""What do the servers answer, directly and through the gateway, when they are called the same way?"""

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters

from holdfast.upstreams.mcp.child import INHERITED
from tests.real.servers import SERVERS, Server
from tests.real.talking import Json, Talk, talking
from tests.real.world import look

TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"
    r"|\w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4} \([^)]*\)"
    r"|\d{1,2}:\d\d:\d\d [AP]M"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
)
"""The only thing that truly differs between two equal calls."""


@dataclass(slots=True)
class Pass:
    """One round of every call."""

    versions: dict[str, str] = field(default_factory=dict)
    tools: dict[str, list[Json]] = field(default_factory=dict)
    answers: dict[str, list[tuple[str, Json]]] = field(default_factory=dict)
    world: Mapping[str, str | bytes] = field(default_factory=dict)


async def directly(folder: Path, page: str) -> Pass:
    done = Pass()

    async def one(server: Server) -> None:
        command, *arguments = server.command(folder)
        variables = {name: os.environ[name] for name in INHERITED if name in os.environ}
        target = StdioServerParameters(
            command=command, args=arguments, env=variables | server.variables(folder), cwd=folder
        )
        async with talking(target, folder) as talk:
            done.versions[server.name] = talk.version
            done.tools[server.name] = await talk.tools()
            done.answers[server.name] = await _round(talk, server, folder, page)

    await asyncio.gather(*map(one, SERVERS))
    done.world = look(folder)
    return done


async def through(url: str, folder: Path, page: str) -> Pass:
    done = Pass()
    async with talking(url, folder) as talk:
        listed = await talk.tools()
        for server in SERVERS:
            done.tools[server.name] = [t for t in listed if t["name"].startswith(f"{server.name}__")]
            done.answers[server.name] = await _round(talk, server, folder, page, f"{server.name}__")
    done.world = look(folder)
    return done


async def _round(
    talk: Talk, server: Server, folder: Path, page: str, prefix: str = ""
) -> list[tuple[str, Json]]:
    """One after the other: later calls see what earlier ones did."""
    calls = server.calls(folder=str(folder), page=page)
    return [(tool, await talk.call(prefix + tool, arguments)) for tool, arguments in calls]


def plain(result: Mapping[str, Any]) -> Json:
    """What a server said, without times and without what each hop adds about itself."""
    kept = {key: value for key, value in result.items() if key not in ("_meta", "resultType")}
    own = {
        key: value
        for key, value in result.get("_meta", {}).items()
        if not key.startswith(("holdfast/", "io.modelcontextprotocol/"))
    }
    said: Json = json.loads(TIMES.sub("<time>", json.dumps({**kept, "_meta": own})))
    return {**said, "isError": said.get("isError", False)}


def texts(result: Mapping[str, Any]) -> Sequence[str]:
    return [block["text"] for block in result["content"] if block["type"] == "text"]
