"""What is a secret once it has been read: where does it end, and when?"""

import base64
import binascii
import json

from holdfast.model.errors import SecretError
from holdfast.model.secret import SHORTEST, Secret

LONGEST = 64 * 1024
"""Characters: beyond every key and token, far below what fills a header or a memory."""


def secret(text: str, *, version: str = "", expires_at: float | None = None) -> Secret:
    """Without the line end that files and programs leave; raises SecretError for what cannot be one."""
    text = text.rstrip("\r\n")
    if len(text) < SHORTEST:
        raise SecretError(f"it has fewer than {SHORTEST} characters, so it is no secret; set it")
    if len(text) > LONGEST:
        raise SecretError(f"it has more than {LONGEST} characters")
    if "\0" in text:
        raise SecretError("it holds a zero byte, so it is no text")
    told = stated_end(text)
    ends = [end for end in (expires_at, told) if end is not None]
    return Secret(text, min(ends, default=None), version)


def stated_end(text: str) -> float | None:
    """When a JSON Web Token says that it ends; a guess that is only ever used to refuse earlier."""
    parts = text.split(".")
    if len(parts) != 3 or not text.startswith("eyJ"):
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    return float(end) if isinstance(end, int | float) and not isinstance(end, bool) else None
