"""How are the issuer's own documents got: its metadata, its keys?"""

from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.gateway.outgoing import Egress
from holdfast.model.defaults import JWKS_DEADLINE_S
from holdfast.model.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.identity.jwks import Fetch

MOST_BYTES = 256 << 10
"""Of one document: the largest issuers publish some 20 kB."""


def fetcher(config: Config, egress: Egress) -> "Fetch | None":
    """None where nobody signs in. The operator names the issuer; what it leads to is a stranger's word."""
    auth = config.auth
    if auth.mode != "jwt":
        return None
    from holdfast.upstreams.http.outgoing import NotFetched

    outgoing = egress.outgoing("auth", auth.issuer, auth.jwks_url)

    async def fetch(url: str) -> bytes:
        try:
            return await outgoing.fetch(
                url, purpose="the issuer's keys", limit_bytes=MOST_BYTES, deadline_s=JWKS_DEADLINE_S
            )
        except NotFetched as error:
            raise HoldfastError(f"{url!r}: {error}") from None

    return fetch
