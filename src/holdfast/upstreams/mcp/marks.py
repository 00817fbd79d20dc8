"""Does a schema want arguments repeated as HTTP headers, and how is a value written in one?

Almost no schema says a word of it, and almost every value is written as it is. The SDK, which knows the
rules, takes a second to import: it is asked about the others only.
"""

from collections.abc import Mapping
from typing import Any

MARK = "x-mcp-header"


def marked(schema: Any) -> bool:
    """Whether the word is anywhere in it."""
    left = [schema]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            if MARK in one:
                return True
            left.extend(one.values())
        elif isinstance(one, list | tuple):
            left.extend(one)
    return False


def misused(schema: Any) -> str | None:
    """What is wrong with its marks."""
    if not marked(schema):
        return None
    from mcp.shared.inbound import find_invalid_x_mcp_header

    return find_invalid_x_mcp_header(schema)


def paths(schema: Any) -> dict[tuple[str, ...], str]:
    """Which argument goes into which header; none where a mark is wrong."""
    if not marked(schema) or misused(schema) is not None:
        return {}
    from mcp.shared.inbound import x_mcp_header_map

    return x_mcp_header_map(schema)


def written(value: str) -> str:
    """So that a server reads from a header exactly this."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?"):
        return value
    from mcp.shared.inbound import encode_header_value

    return encode_header_value(value)
