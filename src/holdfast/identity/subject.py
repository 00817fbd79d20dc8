"""What does the gateway say of a caller to the token server of an upstream?

A short-lived JWT of its own, for that server alone: never the client's token (AUT-1), and no name of a person
or an agent, but ids that mean nothing elsewhere (AUT-7): the same caller has another one at every server. The
key is derived from the store's, so every process says the same; `jwks` is what the server checks it with.
"""

from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from holdfast.model import defaults
from holdfast.model.token import Signer

if TYPE_CHECKING:
    from joserfc.jwk import ECKey

TYPE = "hf-subject+jwt"
ALGORITHM = "ES256"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the curve P-256: a private key is a number from 1 to below it."""
EVERYWHERE = "*"


class Subjects:
    def __init__(self, signer: Signer, issuer: str, now: Callable[[], float]) -> None:
        self._signer, self._issuer, self._now = signer, issuer, now

    @property
    def issuer(self) -> str:
        return self._issuer or f"urn:holdfast:{self._kid}"

    def issue(self, tenant: str, user: str, agent: str, audience: str) -> str:
        """`user` is whom `agent` acts for; an empty one is the gateway itself."""
        from joserfc import jwt

        now = int(self._now())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": audience,
            "sub": self.opaque(tenant, audience, "user", user),
            "iat": now,
            "nbf": now,
            "exp": now + int(defaults.SUBJECT_S),
            "jti": uuid4().hex,
        }
        if user:
            claims["act"] = {"sub": self.opaque(tenant, audience, "agent", f"{user}\0{agent}")}
        return jwt.encode({"typ": TYPE, "alg": ALGORITHM, "kid": self._kid}, claims, self._key)

    def opaque(self, tenant: str, audience: str, kind: str, name: str) -> str:
        said = "\0".join((audience, kind, name)).encode(errors="surrogatepass")
        return self._signer.sign(tenant, "egress id", said)[:32]

    def jwks(self) -> dict[str, Any]:
        public = self._key.as_dict(private=False)
        return {"keys": [{**public, "kid": self._kid, "use": "sig", "alg": ALGORITHM}]}

    @cached_property
    def _key(self) -> "ECKey":
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from joserfc.jwk import ECKey

        seed = self._signer.sign(EVERYWHERE, "egress subject", b"P-256 seed")
        wide = int(seed + self._signer.sign(EVERYWHERE, "egress subject", b"P-256 seed, more"), 16)
        private = ec.derive_private_key(wide % (ORDER - 1) + 1, ec.SECP256R1())
        return ECKey.import_key(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    @cached_property
    def _kid(self) -> str:
        public = self._key.as_dict(private=False)
        return sha256(f"{public['x']}.{public['y']}".encode()).hexdigest()[:16]
