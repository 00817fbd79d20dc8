"""What does Holdfast's configuration say about each server?"""

import os
import re
import shutil
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from holdfast.cli.wrap.clients import Setup
from holdfast.cli.wrap.names import namespaces
from holdfast.cli.wrap.references import References
from holdfast.cli.wrap.servers import Misread, Server, disabled, is_gateway, read
from holdfast.cli.wrap.suspects import in_argument, in_url, in_value

USERINFO = re.compile(r"^(?P<scheme>[A-Za-z][\w+.-]*://)(?P<user>[^/?#@:]*)(?::(?P<password>[^/?#@]*))?@")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """One server, as it was and as it becomes."""

    server: Server
    namespace: str
    settings: Mapping[str, Any]
    """What stands under `mcp` in the configuration."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of every entry of a set-up."""

    setup: Setup
    wrapped: tuple[Wrapped, ...]
    references: References
    left: Mapping[str, str]
    """Entries that stay as they are, and why."""
    gateway: str | None
    """The entry that is Holdfast's own already."""
    notes: tuple[str, ...]


def plan(setup: Setup, out: Path, environ: Mapping[str, str]) -> Plan:
    servers, left, gateway = _sorted(setup)
    references = References(setup, environ)
    given = namespaces(server.name for server in servers)
    notes = [
        f"{server.name}: {key!r} is not carried over; Holdfast has its own way of deciding"
        for server in servers
        for key in server.dropped
    ]
    translate = _Translation(setup, references, out, notes)
    wrapped = tuple(Wrapped(s, given[s.name], translate.settings(s, given[s.name])) for s in servers)
    return Plan(setup, wrapped, references, left, gateway, tuple(notes))


def _sorted(setup: Setup) -> tuple[list[Server], dict[str, str], str | None]:
    servers: list[Server] = []
    left: dict[str, str] = {}
    gateway = None
    for name in setup.node.keys:
        node = setup.node.find(name)
        entry = None if node is None else node.value
        if is_gateway(entry):
            gateway = name
        elif disabled(entry):
            left[name] = "disabled"
        else:
            try:
                servers.append(_known(setup, read(name, entry)))
            except Misread as error:
                left[name] = str(error)
    return servers, left, gateway


def _known(setup: Setup, server: Server) -> Server:
    """Raises Misread where a password would have to be computed from what only the client knows."""
    found = USERINFO.match(server.url or "")
    if found and setup.client.variables and setup.client.variables.search(found[0]):
        raise Misread("its address holds a user that the client fills in; use an 'Authorization' header")
    return server


@dataclass(frozen=True, slots=True)
class _Translation:
    setup: Setup
    references: References
    out: Path
    notes: list[str]

    def settings(self, server: Server, namespace: str) -> dict[str, Any]:
        here = f"{self.setup.place}.{server.name}"
        translate = self.references.translate
        if server.url is not None:
            url, basic = _apart(server.url)
            headers = {
                name: translate(value, in_value(name, value), namespace, f"{here}.headers.{name}")
                for name, value in server.headers.items()
            }
            if basic is not None and "authorization" not in map(str.lower, headers):
                headers["Authorization"] = self.references.made(basic, namespace, f"{here}.url")
            said: dict[str, Any] = {
                "url": translate(url, in_url(url), namespace, f"{here}.url"),
                "headers": headers,
                "transport": "sse" if server.transport == "sse" else None,
            }
        else:
            said = {
                "command": translate(_found(server), [], namespace, f"{here}.command"),
                "args": self._args(server, namespace, here),
                "env": self._env(server, namespace, here),
                "cwd": self._cwd(server, namespace, here),
            }
        return {key: value for key, value in said.items() if value}

    def _args(self, server: Server, namespace: str, here: str) -> list[str]:
        before = ("", *server.args)
        return [
            self.references.translate(text, in_argument(text, before[i]), namespace, f"{here}.args.{i}")
            for i, text in enumerate(server.args)
        ]

    def _env(self, server: Server, namespace: str, here: str) -> dict[str, str]:
        from_file = self._env_file(server, namespace)
        return from_file | {
            name: self.references.translate(value, in_value(name, value), namespace, f"{here}.env.{name}")
            for name, value in server.env.items()
        }

    def _env_file(self, server: Server, namespace: str) -> dict[str, str]:
        """Names only: the values stay in that file."""
        if server.env_file is None:
            return {}
        path = self.references.resolve(server.env_file)
        base = self.setup.folder or Path.cwd()
        try:
            lines = (base / (path or "")).read_text(encoding="utf-8").splitlines() if path else []
        except (OSError, UnicodeDecodeError):
            lines = []
        found = dict(_assignment(line) for line in lines if _assignment(line)[0])
        if not found:
            self.notes.append(
                f"{server.name}: 'envFile' gave nothing; name its variables under 'env' yourself"
            )
        return {
            name: f"${{{self.references.from_file(name, value, namespace, server.env_file)}}}"
            for name, value in found.items()
        }

    def _cwd(self, server: Server, namespace: str, here: str) -> str | None:
        """The project's folder where the client starts servers there; Holdfast starts them beside its own."""
        if server.cwd is not None and "${" in server.cwd:
            return self.references.translate(server.cwd, [], namespace, f"{here}.cwd")
        if server.cwd is None and self.setup.folder is None:
            return None
        folder = (self.setup.folder or Path.cwd()) / (server.cwd or "")
        if folder == self.out:
            return None
        if folder in self.out.parents or self.out in folder.parents:
            return os.path.relpath(folder, self.out)
        return str(folder)


def _found(server: Server) -> str:
    """Holdfast looks beside its own Python first; where another program is meant, it is named by its path."""
    command = server.command or ""
    if "PATH" in server.env or not shutil.which(command, path=str(Path(sys.executable).parent)):
        return command
    meant = shutil.which(command)
    return command if meant is None or Path(meant).parent == Path(sys.executable).parent else meant


def _apart(url: str) -> tuple[str, str | None]:
    """The address without user and password, and these as a header; our addresses hold no credentials."""
    plain = url.partition("#")[0]
    found = USERINFO.match(plain)
    if found is None:
        return plain, None
    said = f"{unquote(found['user'])}:{unquote(found['password'] or '')}"
    return found["scheme"] + plain[found.end() :], f"Basic {b64encode(said.encode()).decode()}"


def _assignment(line: str) -> tuple[str, str]:
    """NAME=value out of an environment file; nothing for a comment or anything else."""
    name, mark, value = line.strip().removeprefix("export ").partition("=")
    name = name.strip()
    if not mark or not name.isidentifier() or not name.isascii():
        return "", ""
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return name, value[1:-1] if quoted else value
