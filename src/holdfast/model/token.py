"""What did this gateway itself write, that comes back through hands it does not trust?

A token is canonical JSON and a keyed seal over it. It is readable by anybody and can be made by nobody who
lacks the key; the seal is for one tenant and one purpose, so a token of one kind is never one of another.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import Any, Protocol

import orjson

from holdfast.model.canonical import canonical

LONGEST = 4096
"""Characters looked at: nothing this gateway issues is longer."""


class Signer(Protocol):
    def sign(self, tenant: str, purpose: str, data: bytes) -> str: ...


def issue(signer: Signer, tenant: str, purpose: str, said: Mapping[str, Any]) -> str:
    body = canonical(dict(said))
    sealed = base64.urlsafe_b64encode(body).decode().rstrip("=")
    return f"{sealed}.{signer.sign(tenant, purpose, body)}"


def read(signer: Signer, tenant: str, purpose: str, token: str) -> dict[str, Any] | None:
    """What the token says; None where this gateway did not say it."""
    sealed, dot, seal = token.partition(".")
    if not dot or len(token) > LONGEST or not token.isascii():
        return None
    try:
        body = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if not hmac.compare_digest(signer.sign(tenant, purpose, body), seal):
        return None
    said: dict[str, Any] = orjson.loads(body)
    return said
