"""What is done where a tool cannot answer?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from holdfast.config.place import Fault
from holdfast.config.section import Section

Capability = Annotated[str, StringConstraints(pattern=r"^\S{1,64}$")]
_TOOL = re.compile(r"[a-z0-9-]{1,32}\.[A-Za-z0-9_./-]{1,128}")


def _tool(name: str) -> str:
    if not _TOOL.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a tool; write 'namespace.name'")
    return name


ToolName = Annotated[str, AfterValidator(_tool)]


def _level(said: Any) -> Any:
    return {"tool": said} if isinstance(said, str) else said


class FallbackTool(Section):
    tool: ToolName
    """Its name; a tool that needs nothing else may stand here as text."""
    arguments: dict[str, Any] | None = None
    """Its arguments, where they differ: `=` begins an expression over `args`, those of the first tool."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """How much its answer is to be believed, from 0 to 1; when left out, 0.1 less with each level."""


class Fallback(Section):
    tools: Annotated[
        tuple[Annotated[FallbackTool, BeforeValidator(_level)], ...], Field(min_length=1, max_length=8)
    ]
    """Who is asked, one after the other; calls of the first fall back on the others."""
    then: Literal["refuse", "person", "stale"] = "refuse"
    """When none answered: `person` asks an operator, `stale` tells what a read said last, marked as such."""

    @model_validator(mode="after")
    def _leads_somewhere(self) -> "Fallback":
        first = self.tools[0]
        if first.arguments is not None or first.confidence is not None:
            raise ValueError(
                "the first of 'tools' is called as it is; remove 'arguments' and 'confidence' there"
            )
        if len(self.tools) == 1 and self.then == "refuse":
            raise ValueError("this falls back on nothing; name a second tool, set 'then', or write 'none'")
        return self


def _none(said: Any) -> Any:
    return None if said == "none" else said


Fallbacks = dict[Capability, Annotated[Fallback | None, BeforeValidator(_none)]]
"""None: it was thought about, and there is nothing to fall back on."""


def twice(fallbacks: Mapping[str, Fallback | None]) -> Iterator[Fault]:
    """Every tool has one place: who answers for a key must be told by its name."""
    seen: dict[str, str] = {}
    for name, fallback in fallbacks.items():
        for number, level in enumerate(() if fallback is None else fallback.tools):
            if level.tool in seen:
                text = f"{level.tool!r} has a place under {seen[level.tool]!r} already; name every tool once"
                yield Fault(("fallbacks", name, "tools", str(number)), text)
            seen.setdefault(level.tool, name)
