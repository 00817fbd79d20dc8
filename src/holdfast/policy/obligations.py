"""What does a policy say beside permit and forbid?

@id("refunds.large")                       its name, unique in the bundle
@reason("refunds above 100 are watched")   what callers and approvers are told
@approval("operator:2,compliance:1")       on a permit: who must say yes first
@description("...")  @owner("...")         for people
"""

import re
from collections.abc import Mapping

KNOWN = ("approval", "description", "id", "owner", "reason")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_PART = re.compile(r"([A-Za-z0-9][A-Za-z0-9._@-]{0,63})(?::([1-9]\d?))?")


def approval(text: str) -> dict[str, int]:
    """Roles and how many of each, from `operator` or `operator:2,compliance`; raises ValueError."""
    need: dict[str, int] = {}
    for part in text.split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise ValueError(
                f"{text!r} names no roles; write them as 'operator' or 'operator:2,compliance:1'"
            )
        if found[1] in need:
            raise ValueError(f"role {found[1]!r} is named twice; say how many once")
        need[found[1]] = int(found[2] or 1)
    return need


def reason(annotations: Mapping[str, str]) -> str:
    return annotations.get("reason") or annotations["id"]
