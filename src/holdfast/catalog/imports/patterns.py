"""Can this pattern be enforced here, and is it safe to show it to others?"""

import re
from functools import lru_cache

import jsonschema_rs

from holdfast.model.schema import SchemaError
from holdfast.model.schema.pattern import Hostile, weigh
from holdfast.model.schema.validation import PATTERNS

_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_BACKWARD = re.compile(r"\\(?:[1-9]|k<\w+>)")


@lru_cache(maxsize=4096)
def usable(pattern: str) -> bool:
    """False where only the upstream's engine can judge it; raises SchemaError where it explodes in one."""
    plain = _BACKWARD.sub("", _LOOKAROUND.sub("(?:", pattern))
    try:
        weigh(plain)
    except Hostile as why:
        raise SchemaError(f"pattern '{pattern[:60]}' {why}") from None
    if plain != pattern:
        return False
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True, pattern_options=PATTERNS)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True
