"""Which files does wrapping write, and which of them are somebody's own by now?

Each begins with a line that holds a digest of the rest. A file whose digest is still right is ours to write
again; one that was edited is a person's, and stays.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from holdfast.cli.wrap.upstreams import Plan, Wrapped

CONFIG = "holdfast.yaml"
LOCK = "holdfast.lock"
OVERLAYS = "overlays"
_FIRST = re.compile(r"# holdfast wrap wrote this \(([0-9a-f]{16})\)[^\n]*\n")

AUTH = """
# A risky call waits until somebody with the role 'operator' has agreed, and nobody agrees to their own call.
# On your own machine that somebody is you: 'holdfast approve ID --as operator'. An agent that can run
# commands here could say so too, until the operator has an 'approver_secret' (see 'holdfast keys hash').
auth:
  mode: local
  people:
    operator: {roles: [operator]}
"""


class Fate(StrEnum):
    WRITTEN = "written"
    UNCHANGED = "unchanged"
    KEPT = "kept: it was edited"
    OTHERS = "kept: it fronts other servers too"


def put(path: Path, body: str) -> Fate:
    """Write a file, unless a person made it theirs."""
    text = _signed(body)
    if path.exists():
        there = path.read_text(encoding="utf-8", errors="replace")
        if there == text:
            return Fate.UNCHANGED
        if not untouched(there):
            return Fate.KEPT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Fate.WRITTEN


def untouched(text: str) -> bool:
    found = _FIRST.match(text)
    return found is not None and found[1] == _digest(text[found.end() :])


def upstream(one: Wrapped, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"mcp": {**one.settings, **more}, "contracts": f"{OVERLAYS}/{one.namespace}.yaml"}


def config(plan: Plan, source: str, more: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the configuration; `more` is what was found out about a server by asking it."""
    told = {one.namespace: upstream(one, more.get(one.namespace, {})) for one in plan.wrapped}
    names = "".join(
        f"#   {one.namespace}: {_line(one.server.name)}\n"
        for one in plan.wrapped
        if one.namespace != one.server.name
    )
    renamed = f"# Namespaces that differ from the names there:\n{names}" if names else ""
    return (
        f"# The servers of {_line(source)} behind one gateway.\n{renamed}"
        "store: sqlite:///holdfast.db # the gateway's own memory: keys, outcomes, approvals, records\n"
        "environment: dev # with auth.mode 'local' this loads the starter policy\n\n"
        f"{_yaml({'upstreams': told})}{AUTH}"
    )


def missing(text: str, wrapped: Sequence[Wrapped]) -> list[Wrapped]:
    """Servers that a configuration which was kept does not name."""
    there = _named(text)
    return [one for one in wrapped if one.namespace not in there]


def others(text: str, wrapped: Sequence[Wrapped]) -> bool:
    return bool(_named(text) - {one.namespace for one in wrapped})


def lines(wrapped: Sequence[Wrapped]) -> str:
    """What to add under `upstreams` of a configuration that is somebody's own."""
    return _yaml({one.namespace: upstream(one, {}) for one in wrapped})


def _named(text: str) -> set[str]:
    import yaml

    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError:
        return set()  # whoever loads it will say so
    there = tree.get("upstreams") if isinstance(tree, dict) else None
    return set(there) if isinstance(there, dict) else set()


def _yaml(tree: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=100)
    return text


def _line(text: str) -> str:
    from holdfast.cli.screen import visible

    return visible(text).replace("\n", "\\n")


def _signed(body: str) -> str:
    return (
        f"# holdfast wrap wrote this ({_digest(body)}). Edit it freely: a file that was edited is not "
        f"written again.\n{body}"
    )


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]
