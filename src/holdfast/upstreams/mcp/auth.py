"""In whose name is a remote server called?"""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote


class Authorizer(Protocol):
    """Headers that open the door for one principal; the empty principal is the gateway itself."""

    async def headers(self, principal: str) -> Mapping[str, str]: ...

    async def challenged(self, principal: str, status: int, www_authenticate: str) -> bool:
        """The server refused them (401 or 403); True when it is worth one more try."""
        ...

    async def close(self) -> None: ...


def whose(tenant: str, principal: str) -> str:
    """A principal's name with its tenant: two tenants may know people of one name (AUT-6)."""
    return principal and f"{quote(tenant, safe='')}/{principal}"
