"""Which keys does the issuer sign with today?

Tokens are checked against the keys known here, without I/O. They are looked at again now and then, and when a
token names one that is not known, at most every few seconds however many such tokens come. While the issuer
is away its last keys count on, for a bounded time. What it has dropped counts no more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from math import inf
from typing import Any
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from holdfast.model.defaults import JWKS_DEADLINE_S, JWKS_REFRESH_S, JWKS_STALE_S, JWKS_UNKNOWN_S
from holdfast.model.errors import HoldfastError
from holdfast.model.strict_json import Limits, ParseError, parse
from holdfast.model.timeout import timeout

log = logging.getLogger(__name__)

Fetch = Callable[[str], Awaitable[bytes]]
"""The document at a URL, held to a size; raises OSError or HoldfastError where there is none."""

READABLE = Limits(max_bytes=256 << 10, max_depth=8, max_string=32 << 10, max_keys=5_000)
MOST_KEYS = 64
LEAST_RSA_BITS = 2048
KINDS = {"RS": ("RSA", None), "PS": ("RSA", None), "EdDSA": ("OKP", ("Ed25519",))} | {
    name: ("EC", (curve,)) for name, curve in (("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521"))
}
"""The kind of key and the curves that each signature is made with."""


class Jwks:
    def __init__(
        self,
        issuer: str,
        url: str | None,
        algorithms: Sequence[str],
        fetch: Fetch | None,
        *,
        now: Callable[[], float],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._issuer, self._url, self._fetch, self._now = issuer, url, fetch, now
        self._algorithms = tuple(algorithms)
        self._changed = changed
        self._keys: tuple[Key, ...] = ()
        self._documents: bytes = b""
        self._looked = self._tried = -inf
        self._looking: asyncio.Task[bool] | None = None
        self.wrong: str | None = None
        """Why the last look brought nothing."""

    def __len__(self) -> int:
        """How many keys are known."""
        return len(self._keys)

    @property
    def until(self) -> float:
        """When the known keys stop to count."""
        return self._looked + JWKS_STALE_S

    @property
    def due(self) -> bool:
        """Whether it is time to look again, or to try again."""
        now = self._now()
        wait = JWKS_REFRESH_S if self._looked == self._tried else JWKS_UNKNOWN_S
        return self._fetch is not None and not self._tried <= now < self._tried + wait

    def find(self, algorithm: str, kid: str | None) -> Key | None:
        """The key a signature was made with; where it names none, there must be only one it could be."""
        if self._now() >= self.until:
            return None
        fitting = [key for key in self._keys if fits(key, algorithm)]
        if kid is not None:
            fitting = [key for key in fitting if key.kid == kid]
        return fitting[0] if len(fitting) == 1 else None

    async def learn(self, algorithm: str, kid: str | None) -> bool:
        """Look for a key that is not known; whether it is now."""
        if self.find(algorithm, kid) is None:
            now = self._now()
            looking = self._looking is not None and not self._looking.done()
            if looking or not self._tried <= now < self._tried + JWKS_UNKNOWN_S:
                await self.look()
        return self.find(algorithm, kid) is not None

    def begin(self) -> "asyncio.Task[bool] | None":
        """Get the issuer's keys, once for all who want them now."""
        if self._fetch is None:
            return None
        if self._looking is None or self._looking.done():
            self._tried = self._now()
            self._looking = asyncio.get_running_loop().create_task(self._look(self._fetch))
        return self._looking

    async def look(self) -> bool:
        """The same, awaited; False where that did not go."""
        looking = self.begin()
        return looking is not None and await asyncio.shield(looking)

    async def close(self) -> None:
        if (looking := self._looking) is not None:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            self._looking = None

    async def _look(self, fetch: Fetch) -> bool:
        try:
            async with timeout(JWKS_DEADLINE_S):
                document = await fetch(self._url or await self._discovered(fetch))
            keys = tuple(self._usable(document))
        except (OSError, TimeoutError, HoldfastError, ParseError) as error:
            why = "no answer in time" if isinstance(error, TimeoutError) else str(error)
            log.warning("the keys of issuer %r cannot be had: %s", self._issuer, why)
            self.wrong = why
            return False
        self.wrong = None
        self._looked = self._tried
        if document != self._documents:
            self._documents, self._keys = document, keys
            self._changed()  # what was signed with a key that is gone is looked at anew
        return True

    async def _discovered(self, fetch: Fetch) -> str:
        """By the issuer's own metadata: of OpenID Connect, else of RFC 8414."""
        wrong = "it has no metadata"
        for where in metadata_urls(self._issuer):
            try:
                said = parse(await fetch(where), READABLE)
            except (OSError, HoldfastError, ParseError) as error:
                wrong = str(error)
                continue
            if not isinstance(said, dict) or said.get("issuer") != self._issuer:
                raise HoldfastError(f"the metadata at {where!r} is of another issuer")
            url = said.get("jwks_uri")
            if not isinstance(url, str) or not as_safe(url, self._issuer):
                raise HoldfastError(f"the metadata at {where!r} names no 'jwks_uri' that can be used")
            return url
        raise HoldfastError(wrong)

    def _usable(self, document: bytes) -> Iterator[Key]:
        said = parse(document, READABLE)
        listed = said.get("keys") if isinstance(said, dict) else None
        if not isinstance(listed, list):
            raise HoldfastError("what is there is no set of keys")
        for one in listed[:MOST_KEYS]:
            key = _public(one)
            if key is not None and any(fits(key, algorithm) for algorithm in self._algorithms):
                yield key


def fits(key: Key, algorithm: str) -> bool:
    """Whether a key is of the kind that makes this signature, and may be used for it."""
    kind, curves = KINDS.get(algorithm) or KINDS.get(algorithm[:2]) or ("", None)
    said = "EdDSA" if key.alg == "Ed25519" else key.alg
    if key.key_type != kind or said not in (None, algorithm):
        return False
    return curves is None or key.get("crv") in curves


def metadata_urls(issuer: str) -> tuple[str, ...]:
    """Where an issuer describes itself: OpenID Connect appends, RFC 8414 puts it before the path."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    host = f"{parts.scheme}://{parts.netloc}/.well-known"
    return (
        f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        f"{host}/oauth-authorization-server{path}",
    )


def as_safe(url: str, issuer: str) -> bool:
    """Not over a worse line than the issuer's own; and nothing but a page of the web."""
    try:
        found, own = urlsplit(url), urlsplit(issuer)
    except ValueError:
        return False
    if not found.hostname or found.username is not None:
        return False
    return found.scheme == "https" or (found.scheme == own.scheme == "http" and found.netloc == own.netloc)


def _public(one: Any) -> Key | None:
    """None for what is no public key to check signatures with."""
    if (
        not isinstance(one, dict)
        or one.get("use", "sig") != "sig"
        or one.get("kty") not in ("RSA", "EC", "OKP")
    ):
        return None
    if "verify" not in one.get("key_ops", ("verify",)) or "d" in one:
        return None
    if one["kty"] == "RSA" and len(str(one.get("n"))) < LEAST_RSA_BITS // 6:
        return None
    try:
        key = JWKRegistry.import_key(one)
        key.check_use("sig")
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    match key:
        case RSAKey() if key.public_key.key_size >= LEAST_RSA_BITS:
            return key
        case ECKey() | OKPKey():
            return key
        case _:
            return None
