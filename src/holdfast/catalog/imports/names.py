"""What is an imported tool called here, and may its name be trusted to be what it looks like?"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from holdfast.catalog.imports.characters import bidi, controls, disguised, hidden, skeleton
from holdfast.model.contract import NAME
from holdfast.model.mcp import COMPANIONS

LONGEST = 128
"""Characters of a native name; the protocol says no more."""
MCP_LONGEST = 64

_HASHED = re.compile(r".*-x[0-9a-f]{8}", re.DOTALL)
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")


def local_name(native: str) -> str:
    """The contract's name for an upstream's own name: the same where it can be, else made safe with a hash.

    A name that already looks like a hashed one gets a hash of its own, so that nobody can take another's.
    """
    if NAME.fullmatch(native) and not _HASHED.fullmatch(native) and native not in COMPANIONS:
        return native
    plain = unicodedata.normalize("NFKD", native).encode("ascii", "ignore").decode()
    return _with_hash(_UNSAFE.sub("-", plain).strip("-") or "tool", native, 64)


def mcp_name(prefix_or_namespace: str, name: str, native: str, mounted_plain: bool) -> str:
    """The name MCP clients see: `<prefix>__<name>`, or the upstream's own where that is mounted 1:1."""
    if mounted_plain:
        return native
    full = f"{prefix_or_namespace}__{name}"
    return full if len(full) <= MCP_LONGEST else _with_hash(full, full, MCP_LONGEST)


def alias(namespace: str, name: str) -> str:
    """The name of a cached read-only alias; a namespace has no `_`, so it can be read back."""
    full = f"mcp_{namespace}_{name}"
    return full if len(full) <= MCP_LONGEST else _with_hash(full, full, MCP_LONGEST)


def odd(name: str) -> list[str]:
    """Why a name is not to be trusted; empty when it is plain."""
    reasons = []
    if not name.strip():
        reasons.append("it is empty")
    if len(name) > LONGEST:
        reasons.append(f"it has {len(name)} characters, more than {LONGEST}")
    if any(c.isspace() for c in name):
        reasons.append("it holds white space")
    if controls(name):
        reasons.append("it holds control characters")
    if bidi(name):
        reasons.append("it holds characters that turn the direction of text")
    if any(True for _, c in hidden(name) if not bidi(c) and not controls(c)):
        reasons.append("it holds characters that nobody sees")
    if disguised(name):
        reasons.append("it mixes alphabets, or is written in letters that look like Latin ones")
    elif unicodedata.normalize("NFKC", name) != name:
        reasons.append("it is written in compatibility letters that look like others")
    return reasons


def collisions(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Different names that look alike, by what they look like."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(skeleton(name), []).append(name)
    return {seen: tuple(group) for seen, group in groups.items() if len(group) > 1}


def _with_hash(text: str, whole: str, longest: int) -> str:
    short = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[: longest - 10]}-x{short}"
