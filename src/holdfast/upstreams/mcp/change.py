"""What happened to an upstream that its users should know?"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["tools", "prompts", "resources", "resource", "up", "down"]


@dataclass(frozen=True, slots=True)
class Change:
    """A list or a resource is not what it was, or the server came or went."""

    kind: Kind
    uri: str | None = None


Hear = Callable[[Change], None]

_LISTS: dict[str, Kind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}


def change(method: Any, params: Any) -> Change | None:
    """What a notification says has changed; None where it says something else."""
    if (kind := _LISTS.get(method)) is not None:
        return Change(kind)
    if method == "notifications/resources/updated":
        uri = params.get("uri") if isinstance(params, dict) else None
        return Change("resource", uri if isinstance(uri, str) else None)
    return None
