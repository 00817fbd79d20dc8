"""How is a secret stored, and does the one presented match?

    sha256:<hex>                        of a secret we made ourselves: 256 random bits cannot be guessed, so a
                                        slow hash would only slow down every request
    scrypt:<n>:<r>:<p>:<salt>:<hash>    of a secret a person chose, which can be guessed
    plain:<secret>                      from an environment variable, never from a file; empty matches nothing

An API key reads `hf_<id>_<secret>`: the id finds the hash, so one hash is computed per request.
"""

import binascii
import hashlib
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hmac import compare_digest

PRESENTED = re.compile(r"hf_([a-z0-9]{4,32})_([0-9a-f]{64})")
SCRYPT_N, SCRYPT_R, SCRYPT_P = 2**14, 8, 1  # 16 MiB and some 50 ms: what scrypt's author advises for a log-in
SCRYPT_MEMORY = 64 * 2**20  # a stored hash may not ask for more


def mint(user: str, agent: str | None = None) -> tuple[str, dict[str, str]]:
    """A new key: the text to hand over once, and the entry for `auth.keys`."""
    id, secret = secrets.token_hex(6), secrets.token_hex(32)
    entry = {"id": id, "hash": hash_random(secret), "user": user}
    return f"hf_{id}_{secret}", entry | ({"agent": agent} if agent else {})


def split(presented: str) -> tuple[str, str] | None:
    """Id and secret of a key, or None when it does not look like one."""
    match = PRESENTED.fullmatch(presented)
    return (match[1], match[2]) if match else None


def hash_random(secret: str) -> str:
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def hash_chosen(secret: str) -> str:
    salt = secrets.token_bytes(16)
    digest = _scrypt(secret, SCRYPT_N, SCRYPT_R, SCRYPT_P, salt)
    return f"scrypt:{SCRYPT_N}:{SCRYPT_R}:{SCRYPT_P}:{_text(salt)}:{_text(digest)}"


def matches(stored: str, presented: str) -> bool:
    """Compared in constant time; anything unreadable is no match."""
    kind, _, rest = stored.partition(":")
    match kind:
        case "sha256":
            return compare_digest(hash_random(presented), stored)
        case "plain":
            return bool(rest) and compare_digest(rest.encode(), presented.encode())
        case "scrypt":
            return _matches_scrypt(rest, presented)
        case _:
            return False


def _matches_scrypt(stored: str, presented: str) -> bool:
    try:
        n, r, p, salt, digest = stored.split(":")
        found = _scrypt(presented, int(n), int(r), int(p), urlsafe_b64decode(salt))
        return compare_digest(found, urlsafe_b64decode(digest))
    except (ValueError, binascii.Error):
        return False


def _scrypt(secret: str, n: int, r: int, p: int, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=salt, n=n, r=r, p=p, maxmem=SCRYPT_MEMORY, dklen=32)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()
