"""Is this a key, and what is it called upstream?

A key is 1 to 255 printable ASCII characters (IDM-1+). It names an operation within a
tenant, a principal and a tool. An upstream sees one space of keys for all of them, so
what goes there is the caller's key with a mark of that scope behind it.
"""

import hashlib
from functools import lru_cache

from holdfast.model.operation import OperationRef

MAX_KEY = 255
_MARK = 16


def well_formed(key: str) -> bool:
    return 0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()


def upstream_key(ref: OperationRef) -> str:
    """Readable, the same on every attempt, and another one for every other operation."""
    mark = _mark(ref.tenant, ref.principal, ref.tool)
    key = ref.key if len(ref.key) <= MAX_KEY - _MARK - 1 else hashlib.sha256(ref.key.encode()).hexdigest()
    return f"{key}.{mark}"


@lru_cache(maxsize=4096)  # few callers use few tools, over and over
def _mark(tenant: str, principal: str, tool: str) -> str:
    return hashlib.sha256("\0".join((tenant, principal, tool)).encode()).hexdigest()[:_MARK]
