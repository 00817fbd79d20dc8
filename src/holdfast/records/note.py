"""Who signed this text?

Signed notes as C2SP specifies them (https://c2sp.org/signed-note), so that other tools can check ours: the
text, an empty line, and one line per signature. Keys are Ed25519 and are written as one line each.
"""

import base64
import binascii
import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from holdfast.model.errors import ConfigError, StoreError

_ED25519 = b"\x01"
_PRIVATE = "PRIVATE+KEY+"
_DASH = "\u2014 "
SHAPE = "a key is one line: name+hash+base64"


class BadNote(Exception):
    """A text that is no note, or that this key has not signed."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Knows the signer by name and public key."""

    name: str
    public: bytes
    _key: Ed25519PublicKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", Ed25519PublicKey.from_public_bytes(self.public))

    @classmethod
    def parse(cls, text: str) -> "Verifier":
        """The line that `holdfast audit key` prints."""
        name, public = _parsed(text.strip())
        return cls(name, public)

    @property
    def id(self) -> bytes:
        return _key_id(self.name, self.public)

    def __str__(self) -> str:
        return _written(self.name, self.id, self.public)

    def open(self, note: str) -> str:
        """The text of a note that this key has signed; raises BadNote."""
        text, signatures = split(note)
        for line in signatures:
            name, _, encoded = line.removeprefix(_DASH).partition(" ")
            if name != self.name:
                continue
            blob = _decoded(encoded)
            if blob[:4] != self.id:
                raise BadNote("it is signed with another key of that name")
            try:
                self._key.verify(blob[4:], text.encode())
            except InvalidSignature:
                raise BadNote("its signature does not fit its text") from None
            return text
        raise BadNote(f"'{self.name}' has not signed it")


@dataclass(frozen=True, slots=True)
class Signer:
    name: str
    _seed: bytes = field(repr=False)

    @classmethod
    def fresh(cls, name: str | None = None) -> "Signer":
        return cls(name or f"holdfast-{secrets.token_hex(4)}", secrets.token_bytes(32))

    @classmethod
    def parse(cls, text: str) -> "Signer":
        line = text.strip()
        if not line.startswith(_PRIVATE):
            raise ConfigError(
                f"this is no audit key; it starts with '{_PRIVATE}', see 'holdfast audit key --new'"
            )
        name, rest = line.removeprefix(_PRIVATE).partition("+")[::2]
        try:
            seed = base64.b64decode(rest.partition("+")[2], validate=True)
        except binascii.Error:
            seed = b""
        if len(seed) != 33 or seed[:1] != _ED25519:
            raise ConfigError("the audit key is damaged; put it back from where it was kept")
        signer = cls(name, seed[1:])
        if signer.private() != line:
            raise ConfigError("the audit key is damaged; put it back from where it was kept")
        return signer

    @property
    def verifier(self) -> Verifier:
        return Verifier(self.name, self._private().public_key().public_bytes_raw())

    def private(self) -> str:
        """The whole key on one line: for a file or a secret store, and nobody else."""
        return _PRIVATE + _written(self.name, self.verifier.id, self._seed)

    def sign(self, text: str) -> str:
        """The note: `text` ends with a line end."""
        blob = self.verifier.id + self._private().sign(text.encode())
        return f"{text}\n{_DASH}{self.name} {base64.b64encode(blob).decode()}\n"

    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._seed)


def split(note: str) -> tuple[str, list[str]]:
    """Text and signature lines; raises BadNote."""
    text, gap, signed = note.rpartition("\n\n")
    lines = signed.splitlines()
    if not gap or not lines or not signed.endswith("\n"):
        raise BadNote("it is not a signed note")
    if not all(line.startswith(_DASH) for line in lines) or "\n".join(lines) + "\n" != signed:
        raise BadNote("its signature lines cannot be read")
    return f"{text}\n", lines


def key_from(source: str, folder: Path, environ: dict[str, str] | None = None) -> Signer:
    """The key that `file:PATH` or `env:NAME` names; raises ConfigError."""
    kind, _, place = source.partition(":")
    if kind == "env":
        held = (os.environ if environ is None else environ).get(place)
        if not held:
            raise ConfigError(f"audit.key: the variable '{place}' is not set; set it to your audit key")
        return Signer.parse(held)
    path = folder / place
    if not path.exists():
        raise ConfigError(f"audit.key: there is no file '{path}'; make one with: holdfast audit key --new")
    return read_key(path)


def read_key(path: Path) -> Signer:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise StoreError(
            f"the audit key '{path}' can be read by others (mode {mode:o}); run: chmod 600 '{path}'"
        )
    return Signer.parse(path.read_text())


def kept_key(path: Path) -> Signer:
    """The key in the file at `path`, made now if there is none; of several starters one wins."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, f"{Signer.fresh().private()}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return read_key(path)


def _parsed(line: str) -> tuple[str, bytes]:
    name, _, rest = line.partition("+")
    try:
        key = base64.b64decode(rest.partition("+")[2], validate=True)
    except binascii.Error:
        key = b""
    if (
        not name
        or len(key) != 33
        or key[:1] != _ED25519
        or _written(name, _key_id(name, key[1:]), key[1:]) != line
    ):
        raise ConfigError(f"this is no public audit key; {SHAPE}, as 'holdfast audit key' prints it")
    return name, key[1:]


def _written(name: str, id: bytes, key: bytes) -> str:
    return f"{name}+{id.hex()}+{base64.b64encode(_ED25519 + key).decode()}"


def _key_id(name: str, public: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


def _decoded(encoded: str) -> bytes:
    """Strictly: two spellings of one signature would be two notes."""
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        blob = b""
    if len(blob) != 68 or base64.b64encode(blob).decode() != encoded:
        raise BadNote("its signature cannot be read")
    return blob
