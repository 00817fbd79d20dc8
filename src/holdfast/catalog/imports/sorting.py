"""Which of the listed descriptors can be looked at further, and which names look like each other?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.catalog.imports.characters import visible
from holdfast.catalog.imports.descriptor import MAX_TOOLS, check, same
from holdfast.catalog.imports.names import MCP_LONGEST, collisions, local_name, odd

_SHOWN = 80


@dataclass(slots=True)
class Sorted:
    sound: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By the upstream's own name."""
    doubts: dict[str, str] = field(default_factory=dict)
    """Names that look like another one's, and whose."""
    twice: dict[str, str] = field(default_factory=dict)
    """Names that were listed with several descriptors."""
    reports: list[str] = field(default_factory=list)


def sort(tools: Sequence[Any], locked: Iterable[str], *, plain: bool) -> Sorted:
    """`locked`: names that are known already. `plain`: the upstream's own names are what clients see."""
    found = Sorted()
    if len(tools) > MAX_TOOLS:
        found.reports.append(f"{len(tools)} tools are listed, only the first {MAX_TOOLS} are looked at")
    for index, tool in enumerate(tools[:MAX_TOOLS]):
        _sort_one(found, tool, index, plain=plain)
    for native in found.twice:
        found.sound.pop(native, None)
    _refuse_meeting(found)
    for group in collisions([*found.sound, *found.twice, *locked]).values():
        for native in group:
            others = ", ".join(f"'{shown(other)}'" for other in group if other != native)
            found.doubts[native] = f"its name looks like that of {others}"
    return found


def shown(name: object) -> str:
    text = visible(name) if isinstance(name, str) else "unnamed"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _sort_one(found: Sorted, tool: Any, index: int, *, plain: bool) -> None:
    reasons = check(tool)
    name = tool.get("name") if isinstance(tool, dict) else None
    if isinstance(name, str) and name:
        reasons += [f"its name is refused: {why}" for why in odd(name)]
    if reasons:
        where = f"tool '{shown(name)}'" if isinstance(name, str) and name else f"tool {index + 1} of the list"
        found.reports.append(f"{where} is skipped: {'; '.join(reasons)}")
    elif tool["name"] in found.sound:
        _listed_again(found, tool)
    else:
        found.sound[tool["name"]] = tool
        if plain and len(tool["name"]) > MCP_LONGEST:
            found.reports.append(
                f"'{shown(name)}' has more than {MCP_LONGEST} characters; some clients refuse it"
            )


def _listed_again(found: Sorted, tool: dict[str, Any]) -> None:
    native = tool["name"]
    if same(found.sound[native], tool):
        found.reports.append(f"'{shown(native)}' is listed twice with one descriptor; it is taken once")
    else:
        found.twice[native] = "it is listed twice with different descriptors"


def _refuse_meeting(found: Sorted) -> None:
    """Two names that a short hash cannot keep apart; nobody meets that by chance."""
    taken: dict[str, list[str]] = {}
    for native in found.sound:
        taken.setdefault(local_name(native), []).append(native)
    for name, natives in taken.items():
        if len(natives) > 1:
            for native in natives:
                del found.sound[native]
            listed = ", ".join(f"'{shown(native)}'" for native in natives)
            found.reports.append(f"{listed} would all be called '{name}'; none of them is taken")
