"""What does a token of our own say, and did we say it?

A delegation as a signed JWT: `sub` is the person, `act` (RFC 8693) who acts for them, `hf` what no standard
has a name for. The key is derived from the store's, so every process on the store reads what any of them
issued, and nobody else issues anything. The header is one fixed text: a token of another kind, key or
algorithm has another, and is not looked at further.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from holdfast.identity.api_keys import Look
from holdfast.identity.credential import Claim, Unauthenticated
from holdfast.identity.delegation import TOKEN, Undelegable, in_person
from holdfast.identity.people import Key, Person
from holdfast.model import defaults
from holdfast.model.bounds import Bounds, Patterns
from holdfast.model.call import Principal
from holdfast.model.token import Signer

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

TYPE = "hf-delegation+jwt"
ALGORITHM = "Ed25519"  # RFC 9864; `EdDSA` leaves the curve open
LONGEST = 8192
"""Characters: what a header may be elsewhere on the way. A wish for more patterns than fit is refused."""
EVERYWHERE = "*"
KEY = "key:"

NO_KEYS: Mapping[str, Key] = {}

PersonOf = Callable[[str, str | None], Person | None]
"""Somebody of a tenant, of whom the configuration says nothing."""


Step = str | list[str]
"""What narrows: scopes, or the name of a key, which says itself what it allows today."""


class Lineage(NamedTuple):
    """What narrowed the credential that somebody hands on from, in order.

    A token repeats it: so when it is shown, what it gives is what its parent would be given now, met with its
    own scopes, whatever became of the person's scopes since.
    """

    base: tuple[Step, ...] = ()
    """Before the agent's own limit."""
    then: tuple[Step, ...] = ()
    grants: tuple[str, ...] = ()
    """Scopes that the first credential gave beside the person's own."""
    holder: str | None = None


class Tokens:
    """Issues delegations, and reads them (`credential.Reader`)."""

    tells = False

    def __init__(
        self,
        signer: Signer,
        issuer: str,
        now: Callable[[], float],
        *,
        keys: Mapping[str, Key] = NO_KEYS,
        person_of: PersonOf | None = None,
        groups: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """`keys`: those that count now; what rests on another counts no more. `groups`: what they give."""
        self._signer, self._now = signer, now
        self._issuer = issuer
        self._keys, self._person_of, self._groups = keys, person_of, groups
        self.look: Look | None = None

    # --- issuing --------------------------------------------------------------------------

    def lineage(self, parent: Principal, presented: str | None, claim: Claim | None) -> Lineage:
        """Of a credential that was proven; None: `parent` needed none."""
        holder = parent.agent if in_person(parent) else None
        if presented is None or claim is None:
            return Lineage(holder=holder)
        if self.reads(presented):
            said = self._opened(presented)
            more = said["hf"]
            then = (*more["then"], said["scope"].split())
            return Lineage(tuple(more["base"]), then, tuple(more["grants"]), more["holder"])
        keys = tuple(name for name in claim.rests_on if name.startswith(KEY))
        base: tuple[Step, ...] = keys or tuple(sorted(limit) for limit in claim.limits)
        return Lineage(base, (), tuple(sorted(claim.grants)), holder)

    def issue(self, given: Principal, lineage: Lineage) -> str:
        """`given` is what `delegate` made; its newest token names this one."""
        from joserfc import jwt

        now = self._now()
        *above, own = given.rests_on
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": given.user,
            "act": _nested(given.act),
            "scope": " ".join(sorted(given.scopes)),
            "exp": floor(given.bounds.until),
            "iat": floor(now),
            "nbf": floor(now),
            "jti": own.removeprefix(TOKEN),
            "hf": {
                "v": 1,
                "tenant": given.tenant,
                "agent": given.agent,
                "trust": given.trust,
                "tools": _listed(given.bounds.tools),
                "resources": _listed(given.bounds.resources),
                "rests_on": above,
                **lineage._asdict(),
            },
        }
        header = orjson.loads(_decoded(self._header))
        token = jwt.encode(header, claims, self._key, algorithms=[ALGORITHM])
        if len(token) > LONGEST:
            raise Undelegable("this delegation is too long for a token; ask for fewer or wider patterns")
        return token

    @property
    def issuer(self) -> str:
        return self._issuer or self.audience

    @cached_property
    def audience(self) -> str:
        """This gateway, whichever address it has."""
        return f"urn:holdfast:{self._kid}"

    # --- reading --------------------------------------------------------------------------

    def reads(self, presented: str) -> bool:
        head, _, rest = presented.partition(".")
        return rest.count(".") == 1 and _claims_type(head)

    def prove(self, presented: str) -> Claim:
        said = self._opened(presented)
        now = self._now()
        begins = said["nbf"] - defaults.TOKEN_SKEW_S  # clocks differ; the end is not moved
        if not begins <= now < said["exp"]:
            raise Unauthenticated("this delegation is over; ask for a new one")
        more: dict[str, Any] = said["hf"]
        rests_on = (*more["rests_on"], f"{TOKEN}{said['jti']}")
        for name in rests_on:
            self._counts(name, now)
        return Claim(
            user=said["sub"],
            agent=more["agent"],
            limits=self._limits(more["base"]),
            then=self._limits([*more["then"], said["scope"].split()]),
            holder=more["holder"],
            grants=self._groups().intersection(more["grants"]),
            until=said["exp"],
            tenant=more["tenant"],
            trust=more["trust"],
            bounds=Bounds(_patterns(more["tools"]), _patterns(more["resources"]), said["exp"]),
            act=_chain(said["act"]),
            rests_on=rests_on,
            person=None if self._person_of is None else self._person_of(said["sub"], more["tenant"]),
        )

    async def learn(self, presented: str) -> bool:
        """Of a key that was made elsewhere and handed on from at once."""
        if self.look is None:
            return False
        try:
            names = self._opened(presented)["hf"]["rests_on"]
        except Unauthenticated:
            return False
        unknown = any(name.startswith(KEY) and name.removeprefix(KEY) not in self._keys for name in names)
        return unknown and await self.look()

    def _opened(self, presented: str) -> dict[str, Any]:
        """Exactly as it was issued: no other spelling of the same signature."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        head, body, seal = presented.split(".")
        if head != self._header or len(presented) > LONGEST:
            raise Unauthenticated("this delegation was not issued here")
        if any(_encoded(_decoded(part)) != part for part in (body, seal)):
            raise Unauthenticated("this delegation was written another way")
        try:
            said = jwt.decode(presented, self._key, algorithms=[ALGORITHM]).claims
        except (JoseError, ValueError):
            raise Unauthenticated("this delegation was changed, or not issued here") from None
        if said.get("aud") != self.audience or said.get("hf", {}).get("v") != 1:
            raise Unauthenticated("this delegation is of another kind")
        return said

    def _counts(self, name: str, now: float) -> None:
        """A key that is gone takes with it whatever rests on it."""
        key = self._keys.get(name.removeprefix(KEY)) if name.startswith(KEY) else None
        if name.startswith(KEY) and (key is None or now >= key.expires_at):
            raise Unauthenticated(f"it rests on {name!r}, which counts no more")

    def _limits(self, steps: Iterable[Step]) -> tuple[frozenset[str], ...]:
        keys = self._keys
        said = (keys[step.removeprefix(KEY)].scopes if isinstance(step, str) else step for step in steps)
        return tuple(frozenset(limit) for limit in said if limit is not None)

    # --- the key --------------------------------------------------------------------------

    @cached_property
    def _key(self) -> "OKPKey":
        """For this alone: made of the store's key, as the keys for seals are."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from joserfc.jwk import OKPKey

        seed = bytes.fromhex(self._signer.sign(EVERYWHERE, "delegation", b"Ed25519 seed"))
        public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
        return OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": _encoded(public), "d": _encoded(seed)})

    @cached_property
    def _kid(self) -> str:
        public = orjson.dumps(self._key.as_dict(private=False), option=orjson.OPT_SORT_KEYS)
        return sha256(public).hexdigest()[:16]

    @cached_property
    def _header(self) -> str:
        return _encoded(orjson.dumps({"typ": TYPE, "alg": ALGORITHM, "kid": self._kid}))


def _claims_type(head: str) -> bool:
    """Whether a header says that it is one of these, ours or not."""
    try:
        said = orjson.loads(_decoded(head))
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("typ") == TYPE


def _nested(act: tuple[str, ...]) -> dict[str, Any]:
    """As RFC 8693 4.1: who acts now outside, who acted before within."""
    claim: dict[str, Any] = {}
    for name in reversed(act):
        claim = {"sub": name, "act": claim} if claim else {"sub": name}
    return claim


def _chain(claim: Mapping[str, Any]) -> tuple[str, ...]:
    names: list[str] = []
    at: Any = claim
    while isinstance(at, Mapping) and len(names) <= defaults.DELEGATION_DEPTH:
        names.append(str(at["sub"]))
        at = at.get("act")
    return tuple(names)


def _listed(patterns: Patterns | None) -> list[str] | None:
    return None if patterns is None else sorted(patterns)


def _patterns(listed: list[str] | None) -> Patterns | None:
    return None if listed is None else frozenset(listed)


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
