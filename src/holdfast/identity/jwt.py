"""Is this a token of our issuer, meant for us, and still good?

Every token is refused that is not signed by a key of the issuer with one of the configured algorithms, names
another issuer, audience or resource, or is before or after its time. Refusals say why to the log alone.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError

from holdfast.identity.credential import LONGEST, Claim, Unauthenticated
from holdfast.identity.jwks import Jwks
from holdfast.identity.jwt_claims import Reading
from holdfast.model.strict_json import Limits, ParseError, parse

TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""What an access token says it is (RFC 9068); issuers that are older say less. Nothing else is one."""
READABLE = Limits(max_bytes=LONGEST, max_depth=8, max_string=LONGEST, max_keys=2_000)
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a token must be."""

    issuer: str
    audience: str
    resource: str
    algorithms: frozenset[str]
    skew_s: float


class IssuerTokens:
    """Reads what looks like a token."""

    tells = False

    def __init__(self, wanted: Wanted, keys: Jwks, reading: Reading, now: Callable[[], float]) -> None:
        self._wanted, self.keys, self._reading, self._now = wanted, keys, reading, now

    def reads(self, presented: str) -> bool:
        if _FORM.fullmatch(presented) is None:
            return False
        try:
            kind = _object(_decoded(presented.partition(".")[0])).get("typ")
        except Unauthenticated:
            return False
        return _is_access(kind)

    def prove(self, presented: str) -> Claim:
        said, until = self.opened(presented)
        return self._reading.claim(said, until)

    def opened(self, presented: str) -> tuple[dict[str, Any], float]:
        """What a token says that is good now, and until when it is; raises Unauthenticated."""
        (header, payload, seal), signed = _parts(presented), presented.rpartition(".")[0].encode()
        algorithm, kid = self._signed_by(header)
        key = self.keys.find(algorithm, kid)
        if key is None:
            raise Unauthenticated(f"its key {_short(kid)} is not known")
        if not _is_seal(algorithm, signed, seal, key):
            raise Unauthenticated("its signature is not right")
        said = _object(payload)
        until = min(self._until(said), self.keys.until)
        self._meant_for_us(said)
        return said, until

    def meant_for(self, audience: str) -> "IssuerTokens":
        """The same for tokens that are meant for somebody else: an ID token for the client that asked."""
        wanted = replace(self._wanted, audience=audience, resource=audience)
        return IssuerTokens(wanted, self.keys, self._reading, self._now)

    async def learn(self, presented: str) -> bool:
        try:
            return await self.keys.learn(*self._signed_by(_parts(presented)[0]))
        except Unauthenticated:
            return False

    def _signed_by(self, header: bytes) -> tuple[str, str | None]:
        """The algorithm and the key it names, both unproven."""
        said = _object(header)
        algorithm, kid, kind = said.get("alg"), said.get("kid"), said.get("typ")
        algorithm = "EdDSA" if algorithm == "Ed25519" else algorithm  # the newer name of the same (RFC 9864)
        if not isinstance(algorithm, str) or algorithm not in self._wanted.algorithms:
            raise Unauthenticated(f"it is signed with {_short(algorithm)}, which is not accepted")
        if not _is_access(kind):
            raise Unauthenticated(f"it is no access token, but {_short(kind)}")
        if "crit" in said or "b64" in said:
            raise Unauthenticated("it asks for an extension that is not known")
        if kid is not None and not isinstance(kid, str):
            raise Unauthenticated("its key has no name")
        return algorithm, kid

    def _until(self, said: Mapping[str, Any]) -> float:
        """When it ends, if it is good now."""
        now, skew = self._now(), self._wanted.skew_s
        until = _moment(said, "exp")
        if until is None:
            raise Unauthenticated("it never ends")
        if now >= until + skew:
            raise Unauthenticated("it has expired")
        for name in ("nbf", "iat"):
            begins = _moment(said, name)
            if begins is not None and begins > now + skew:
                raise Unauthenticated("it is not valid yet")
        return until + skew

    def _meant_for_us(self, said: Mapping[str, Any]) -> None:
        wanted = self._wanted
        if said.get("iss") != wanted.issuer:
            raise Unauthenticated(f"its issuer is {_short(said.get('iss'))}")
        audience = _listed(said.get("aud"))
        if wanted.audience not in audience:
            raise Unauthenticated(f"its audience is {_short(said.get('aud'))}")
        if wanted.resource not in audience | _listed(said.get("resource")):
            raise Unauthenticated("it is meant for another resource")
        if "cnf" in said:  # taken from whoever shows it, it would be worth more than its owner wants
            raise Unauthenticated("it is bound to a key of its holder, which cannot be checked here")


def _parts(presented: str) -> tuple[bytes, bytes, bytes]:
    parts = presented.split(".")
    if len(presented) > LONGEST or len(parts) != 3:
        raise Unauthenticated("it is no token")
    header, payload, seal = [_decoded(part) for part in parts]
    return header, payload, seal


def _is_seal(algorithm: str, signed: bytes, seal: bytes, key: Any) -> bool:
    """Whether a key of the right kind made it; `fits` has looked at the kind."""
    model = jws.JWSRegistry.algorithms["Ed25519" if algorithm == "EdDSA" else algorithm]
    try:
        model.check_key(key)
        return model.verify(signed, seal, key)
    except (JoseError, ValueError, TypeError):
        return False


def _is_access(kind: Any) -> bool:
    return kind is None or (isinstance(kind, str) and kind.lower() in TYPES)


def _decoded(part: str) -> bytes:
    """Base64 in its one right spelling: a token that can be respelt could be told apart from itself."""
    try:
        decoded = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (NotBase64, ValueError):
        raise Unauthenticated("it is no base64") from None
    if urlsafe_b64encode(decoded).rstrip(b"=").decode() != part:
        raise Unauthenticated("it is spelt in another way than the issuer did")
    return decoded


def _object(raw: bytes) -> dict[str, Any]:
    try:
        said = parse(raw, READABLE)
    except ParseError:
        said = None
    if not isinstance(said, dict):
        raise Unauthenticated("a part of it cannot be read")
    return said


def _moment(said: Mapping[str, Any], name: str) -> float | None:
    if (value := said.get(name)) is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise Unauthenticated(f"its {name!r} is no time")
    return float(value)


def _listed(value: Any) -> frozenset[str]:
    values = value if isinstance(value, list) else [value]
    return frozenset(one for one in values if isinstance(one, str))


def _short(value: Any) -> str:
    """For the log: whoever sent the token chose this."""
    return ascii(value)[:100]
