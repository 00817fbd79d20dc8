"""Which servers stand behind the gateway, and how is each started?

What their tools really do is in `overlays/`, how each tool is called in `calls/`, one file per server.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.npm.installed import script
from tests.real.installed import environment, program

HERE = Path(__file__).parent
NPM = "@modelcontextprotocol/server-"
COMMITS = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ana"), ("EMAIL", "ana@example.com"), ("DATE", "1767323045 +0000"))
}
"""Whoever commits, and whenever: the same commit has the same name."""


@dataclass(frozen=True)
class Server:
    name: str
    command: Callable[[Path], tuple[str, ...]]
    variables: Callable[[Path], dict[str, str]] = lambda _: {"PATH": os.defpath}

    @property
    def overlay(self) -> Path:
        return HERE / "overlays" / f"{self.name}.yaml"

    def calls(self, **places: str) -> list[tuple[str, dict[str, Any]]]:
        """The calls in their order, with the places of this run in their arguments."""
        text = (HERE / "calls" / f"{self.name}.yaml").read_text()
        for name, place in places.items():
            text = text.replace(f"{{{name}}}", place)
        return [next(iter(call.items())) for call in yaml.safe_load(text)]


def _npm(name: str, *arguments: str) -> tuple[str, ...]:
    return (*script(NPM + name, "dist/index.js"), *arguments)


SERVERS = (
    Server("everything", lambda _: _npm("everything", "stdio")),
    Server("files", lambda folder: _npm("filesystem", str(folder / "files"))),
    Server(
        "memory",
        lambda _: _npm("memory"),
        lambda folder: {"PATH": os.defpath, "MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
    ),
    Server("thinking", lambda _: _npm("sequential-thinking")),
    Server(
        "git",
        lambda folder: (program("mcp-server-git"), "--repository", str(folder / "repo")),
        lambda _: {"PATH": os.environ.get("PATH", os.defpath), **COMMITS},
    ),
    Server(
        "fetch",
        lambda _: (program("mcp-server-fetch"), "--allow-private-ips"),
        lambda _: {"PATH": str(environment() / "bin")},  # where it finds node, it would fetch more from npm
    ),
    Server("time", lambda _: (program("mcp-server-time"), "--local-timezone", "UTC")),
)
