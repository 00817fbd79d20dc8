"""Which one entry replaces the servers, and how does the file look with it?"""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from holdfast.cli.wrap.jsonc import Member
from holdfast.cli.wrap.references import Reference
from holdfast.cli.wrap.upstreams import Plan

ADDRESS = "http://127.0.0.1:8080/mcp"
"""Where `holdfast serve` answers when it is not told otherwise."""
NAMES = ("holdfast", "holdfast-gateway", *(f"holdfast-{number}" for number in range(2, 100)))
"""What the entry is called; the first that nothing else is called."""
_OPENED = re.compile(r'\{[ \t]*(?:(?://|/\*)[^\r\n]*)?\r?\n([ \t]+)"')

Serve = Literal["stdio", "http"]


def entry(plan: Plan, config: Path, serve: Serve) -> dict[str, Any]:
    """The entry with its values, for the client's own file only."""
    client = plan.setup.client
    if serve == "http":
        return client.remote(ADDRESS)
    command, *args = started()
    passed = _passed(plan.references.given)
    made = client.local(command, [*args, "stdio", "--config", str(config), "--agent", client.agent], passed)
    files = {r.file for r in plan.references.given.values() if r.file is not None}
    return {**made, "envFile": files.pop()} if len(files) == 1 else made


def shown(plan: Plan, made: Mapping[str, Any], *, applied: bool = False) -> dict[str, Any]:
    """The entry as it may be printed: instead of a secret it says where the value is."""
    given = plan.references.given
    if "env" not in made:
        return dict(made)
    say = "moved here from" if applied else "the value of"
    hints = {n: f"<{say} {given[n].where}>" if given[n].secret else v for n, v in made["env"].items()}
    return {**made, "env": hints}


def name_of(plan: Plan) -> str:
    return next(name for name in (plan.gateway, *NAMES) if name and name not in plan.left)


def started() -> list[str]:
    """The words that start Holdfast; clients with a window know no search path, so it is the whole path."""
    found = Path(sys.argv[0])
    if found.stem != "holdfast" or not found.is_file():
        found = Path(shutil.which("holdfast") or "")
    return [str(found.absolute())] if found.name else [sys.executable, "-m", "holdfast"]


def edited(text: str, plan: Plan, name: str, made: Mapping[str, Any]) -> str:
    """The file with the entry in place of what it wraps; entries that are left stay as they are written."""
    node = plan.setup.node
    kept = [member for member in node.members or () if member.key in plan.left]
    return text[: node.start] + _value(text, node.start, name, made, kept) + text[node.end :]


def _passed(given: Mapping[str, Reference]) -> dict[str, str]:
    return {name: reference.text for name, reference in given.items() if reference.file is None}


def _value(text: str, start: int, name: str, made: Mapping[str, Any], kept: Iterable[Member]) -> str:
    unit, end = _indent(text), "\r\n" if "\r\n" in text else "\n"
    raw = {member.key: text[member.node.start : member.node.end] for member in kept}
    if unit is None:
        inside = [f"{_json(name)}: {_json(made)}", *(f"{_json(key)}: {said}" for key, said in raw.items())]
        return "{" + ", ".join(inside) + "}"
    line = text[text.rfind("\n", 0, start) + 1 : start]
    base = line[: len(line) - len(line.lstrip(" \t"))]
    deeper = f"{end}{base}{unit}"
    own = json.dumps(made, indent=unit, ensure_ascii=False).replace("\n", deeper)
    inside = [f"{_json(name)}: {own}", *(f"{_json(key)}: {said}" for key, said in raw.items())]
    return "{" + deeper + f",{deeper}".join(inside) + f"{end}{base}" + "}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent(text: str) -> str | None:
    """One step of this file's indentation; None where it stands on one line."""
    found = _OPENED.search(text)
    if found is None:
        return None
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    return found[1].removeprefix(outer) or found[1]
