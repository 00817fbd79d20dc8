"""What may a client carry for us that it can neither read nor change?

Small things that a stateless protocol hands back with the next request: sealed under the tenant's key and
bound to who got it, what for, and until when. Any process on the same store can open it.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson

from holdfast.model.call import Principal
from holdfast.model.errors import StoreError
from holdfast.ports import Clock, Secrets

LONGEST = 64 * 1024
"""Characters of a sealed text that is looked at."""


def seal(
    secrets: Secrets, clock: Clock, principal: Principal, purpose: str, said: Mapping[str, Any], life_s: float
) -> str:
    whole = {"for": purpose, "to": principal.id, "until": clock.now() + life_s, "said": dict(said)}
    return base64.urlsafe_b64encode(secrets.seal(principal.tenant, orjson.dumps(whole))).decode().rstrip("=")


def unseal(
    secrets: Secrets, clock: Clock, principal: Principal, purpose: str, sealed: str
) -> dict[str, Any] | None:
    """What was sealed, or None: not ours, not theirs, for something else, or too late."""
    if len(sealed) > LONGEST:
        return None
    try:
        raw = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        whole = orjson.loads(secrets.unseal(principal.tenant, raw))
    except (StoreError, ValueError, binascii.Error):
        return None
    if whole.get("for") != purpose or whole.get("to") != principal.id or whole.get("until", 0) < clock.now():
        return None
    said = whole.get("said")
    return said if isinstance(said, dict) else None
