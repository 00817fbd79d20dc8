"""Descriptors as servers list them, honest and otherwise, and one way to import them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from holdfast.catalog.imports.imported import Imported, import_tools
from holdfast.catalog.imports.lock import Lock
from holdfast.catalog.imports.overlay import Overlay
from holdfast.model.contract import Contract

DATA = Path(__file__).parent / "data"
NOW = "2030-01-01T00:00:00+00:00"
PATH = {"type": "string", "description": "Where the file is"}


def tool(name: str = "read_file", **members: Any) -> dict[str, Any]:
    base = {
        "name": name,
        "description": "Reads a file, whole.",
        "inputSchema": {"type": "object", "properties": {"path": PATH}, "required": ["path"]},
    }
    return {**base, **members}


def real(server: str) -> list[dict[str, Any]]:
    """What a public server listed when asked; see data/."""
    listed: list[dict[str, Any]] = json.loads((DATA / f"{server}.json").read_text())
    return listed


SERVERS = sorted(path.stem for path in DATA.glob("*.json"))


def take(
    *tools: Any,
    lock: Lock | None = None,
    overlay: Mapping[str, Any] | None = None,
    trust: bool = False,
    now: str = NOW,
    **more: Any,
) -> Imported:
    stated = Overlay() if overlay is None else Overlay.parse({"version": 1, "tools": overlay}, "test.yaml")
    lock = lock if lock is not None else Lock()
    return import_tools("files", tools, overlay=stated, lock=lock, trust_annotations=trust, now=now, **more)


def offered(imported: Imported, name: str = "read_file") -> list[Contract]:
    """Every version of one tool, oldest first."""
    return [o.contract for o in imported.offers if o.contract.identity.name == name]


def versions(imported: Imported, name: str = "read_file") -> list[str]:
    return [contract.version for contract in offered(imported, name)]


_WORDS = st.sampled_from("file order mail name count the of read write list a one new old size".split())
_TEXT = st.lists(_WORDS, min_size=1, max_size=8).map(" ".join)
_LEAF = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={"maxLength": st.integers(1, 99)}),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": st.integers(-9, 9)}),
    st.fixed_dictionaries({"enum": st.lists(_WORDS, min_size=1, max_size=3, unique=True)}),
    st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans()}),
    st.fixed_dictionaries({"type": st.just("array"), "items": st.just({"type": "string"})}),
)
_MEMBER = st.tuples(_LEAF, _TEXT).map(lambda pair: {**pair[0], "description": pair[1]})


@st.composite
def descriptors(draw: st.DrawFn) -> dict[str, Any]:
    """Sound descriptors of any shape a server lists."""
    properties = draw(st.dictionaries(_WORDS, _MEMBER, min_size=1, max_size=4))
    made: dict[str, Any] = {
        "name": draw(st.sampled_from(["read_file", "send-mail", "order.list", "x1"])),
        "description": draw(_TEXT),
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": sorted(draw(st.sets(st.sampled_from(sorted(properties))))),
        },
    }
    if draw(st.booleans()):
        hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
        made["annotations"] = draw(st.dictionaries(st.sampled_from(hints), st.booleans(), min_size=1))
    if draw(st.booleans()):
        made["outputSchema"] = {"type": "object", "properties": draw(st.dictionaries(_WORDS, _MEMBER))}
    if draw(st.booleans()):
        made["title"] = draw(_TEXT)
    return made
