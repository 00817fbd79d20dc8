"""Which client's file is this, and where in it are the servers?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.cli.wrap.jsonc import Node
from holdfast.model.errors import ConfigError

SHELL = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^{}]*))?\}")
EDITOR = re.compile(r"\$\{(?:(?P<kind>[A-Za-z]+):)?(?P<name>[^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Client:
    """What differs between clients that otherwise all name their servers in JSON."""

    name: str
    variables: re.Pattern[str] | None = None
    """What it fills in itself, such as `${input:key}`; None: it takes every text as it is."""
    typed: bool = False
    """An entry says `type`."""
    url: str | None = "url"
    """What it calls the address of a remote server; None: this file holds local ones only."""

    @property
    def agent(self) -> str:
        """What it is called in records and approvals."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())

    def local(self, command: str, args: list[str], env: dict[str, str]) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "stdio"} if self.typed else {}
        return {**entry, "command": command, "args": args, **({"env": env} if env else {})}

    def remote(self, address: str) -> dict[str, Any]:
        if self.url is None:
            raise ConfigError(f"{self.name} knows no addresses in this file; use --serve stdio")
        named = {"headers": {"X-Holdfast-Agent": self.agent}}
        return {**({"type": "http"} if self.typed else {}), self.url: address, **named}


CLAUDE_DESKTOP = Client("Claude Desktop", url=None)
CLAUDE_CODE = Client("Claude Code", SHELL, typed=True)
CURSOR = Client("Cursor", EDITOR)
VS_CODE = Client("VS Code", EDITOR, typed=True)
WINDSURF = Client("Windsurf", EDITOR, url="serverUrl")
ZED = Client("Zed")
ANY = Client("MCP client", SHELL)

PLACES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("mcpServers",), "Claude Desktop, Claude Code, Cursor, Windsurf and most others"),
    (("projects", "*", "mcpServers"), "Claude Code's ~/.claude.json"),
    (("servers",), "VS Code's mcp.json"),
    (("mcp", "servers"), "VS Code's settings.json"),
    (("mcp.servers",), "VS Code's settings.json"),
    (("context_servers",), "Zed's settings.json"),
)
"""Where servers are looked for, and who keeps them there."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The servers of one place in one file."""

    client: Client
    path: tuple[str, ...]
    node: Node
    folder: Path | None
    """Where this client starts them: the project's folder, where the file belongs to a project."""

    @property
    def place(self) -> str:
        return ".".join(self.path)

    @property
    def project(self) -> str | None:
        return self.path[1] if self.path[0] == "projects" else None


def setups(file: Path, root: Node) -> list[Setup]:
    """Every place of this file that holds servers; raises ConfigError that says what was looked for."""
    if root.members is None:
        raise ConfigError('it must hold one object, such as {"mcpServers": {...}}')
    found = [setup for path, _ in PLACES for setup in _at(file, root, path)]
    if not found:
        looked = "\n  ".join(f"{'.'.join(path)!r}: {who}" for path, who in PLACES)
        there = ", ".join(map(repr, root.keys[:12])) or "nothing"
        raise ConfigError(f"it holds no MCP servers (there is {there}); looked for\n  {looked}")
    return [setup for setup in found if setup.node.members] or found[:1]


def _at(file: Path, root: Node, path: tuple[str, ...]) -> Iterator[Setup]:
    if path[0] == "projects":
        projects = root.find("projects")
        for project in projects.keys if projects else ():
            yield from _one(file, root, ("projects", project, *path[2:]))
    else:
        yield from _one(file, root, path)


def _one(file: Path, root: Node, path: tuple[str, ...]) -> Iterator[Setup]:
    node = root.find(*path)
    if node is None:
        return
    if node.members is None:
        raise ConfigError(f"{'.'.join(path)!r} must be an object that names servers")
    yield Setup(_client(file, path), path, node, _folder(file, path))


def _client(file: Path, path: tuple[str, ...]) -> Client:
    match path:
        case ("context_servers",):
            return ZED
        case ("servers",) | ("mcp", "servers") | ("mcp.servers",):
            return VS_CODE
    if file.name == "claude_desktop_config.json":
        return CLAUDE_DESKTOP
    if file.name in (".mcp.json", ".claude.json"):
        return CLAUDE_CODE
    if file.parent.name == ".cursor":
        return CURSOR
    return WINDSURF if file.name == "mcp_config.json" else ANY


def _folder(file: Path, path: tuple[str, ...]) -> Path | None:
    if path[0] == "projects":
        return Path(path[1])
    if file.name == ".mcp.json":
        return file.parent
    if file.parent.name in (".cursor", ".vscode") and file.parent.parent != Path.home():
        return file.parent.parent
    return None
