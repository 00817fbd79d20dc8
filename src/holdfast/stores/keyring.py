"""Which keys protect what is stored, and who can read it?

One root secret in a 0600 file beside the database (DEC-4). Each tenant has a random data key, kept in the
database wrapped by the root: deleting that row makes everything of the tenant unreadable. Keys for HMACs
are derived from the root per tenant and purpose.
"""

import hashlib
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from holdfast.model.errors import StoreError
from holdfast.stores.files import sync

ROOT_BYTES = 32
NONCE_BYTES = 12


Make = Callable[[str, bytes], Awaitable[bytes]]
"""As `TenantKeys.keep`, and nobody but who asked waits for it."""


class TenantKeys(Protocol):
    """Where wrapped data keys are kept, for who cannot wait for an event loop."""

    def keep(self, tenant: str, wrapped: bytes) -> bytes:
        """The tenant's wrapped key: the one kept before, else `wrapped`, kept from now on."""
        ...

    def find(self, tenant: str) -> bytes | None: ...


class DictTenantKeys(dict[str, bytes]):
    """Wrapped keys that end with the process."""

    def keep(self, tenant: str, wrapped: bytes) -> bytes:
        return self.setdefault(tenant, wrapped)

    def find(self, tenant: str) -> bytes | None:
        return self.get(tenant)


class Keyring:
    """Keyed one-way functions and payload encryption, per tenant."""

    def __init__(
        self, root: bytes | None = None, tenant_keys: TenantKeys | None = None, make: Make | None = None
    ) -> None:
        """`make` is for keys that are kept where writing may take long."""
        self._root = root if root is not None else secrets.token_bytes(ROOT_BYTES)
        self._tenant_keys = tenant_keys if tenant_keys is not None else DictTenantKeys()
        self._make = make
        self._macs: dict[tuple[str, str], _Mac] = {}
        self._commitments: dict[str, _Mac] = {}
        self._nonces = Nonces()
        self._data: dict[str, tuple[AESGCM, bytes, bytes]] = {}
        self._wrapped: dict[str, bytes] = {}

    async def ready(self, tenant: str) -> None:
        """Have the tenant's key at hand; raises StoreError where this root does not belong to it."""
        if tenant not in self._data and self._make is not None:
            self._learn(tenant, await self._make(tenant, self._fresh(tenant)))

    def derive_key(self, tenant: str, parts: Sequence[str]) -> str:
        """A key for an operation the caller has not named; IDM-2."""
        return self._mac(tenant, "operation-key", _joined(parts))

    def commitment(self, tenant: str, data: bytes) -> str:
        """Proves later what `data` was, and tells nobody who lacks the key; nor anybody once it is erased."""
        keyed = self._commitments.get(tenant)
        if keyed is None:
            keyed = self._commitments[tenant] = _Mac(self._commitment_key(tenant))
        return keyed.of(data)

    def seal(self, tenant: str, data: bytes) -> bytes:
        cipher, associated, _ = self._data.get(tenant) or self._cipher(tenant)
        nonce = self._nonces.next()
        return nonce + cipher.encrypt(nonce, data, associated)

    def unseal(self, tenant: str, sealed: bytes) -> bytes:
        """Raises StoreError; it never makes a key, for what is sealed had one."""
        found = self._data.get(tenant) or self._found(tenant)
        if found is not None:
            cipher, associated, _ = found
            with suppress(InvalidTag, ValueError):
                return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], associated)
        raise StoreError(f"a payload of tenant '{tenant}' cannot be read: it was changed, or its key is gone")

    def sign(self, tenant: str, purpose: str, data: bytes) -> str:
        return self._mac(tenant, f"sign:{purpose}", data)

    def forget_but(self, kept: Mapping[str, bytes]) -> None:
        """Forget every key that is no longer kept: somebody erased its tenant."""
        for tenant in list(self._data):
            if kept.get(tenant) != self._wrapped.get(tenant):
                self._data.pop(tenant, None)
                self._wrapped.pop(tenant, None)
                self._commitments.pop(tenant, None)

    def opens(self, tenant: str, wrapped: bytes) -> bool:
        """Whether a tenant's key was wrapped by this root."""
        try:
            self._unwrapped(tenant, wrapped)
        except (InvalidTag, ValueError):
            return False
        return True

    def _cipher(self, tenant: str) -> tuple[AESGCM, bytes, bytes]:
        found = self._data.get(tenant) or self._found(tenant)
        return found or self._learn(tenant, self._tenant_keys.keep(tenant, self._fresh(tenant)))

    def _found(self, tenant: str) -> tuple[AESGCM, bytes, bytes] | None:
        wrapped = self._tenant_keys.find(tenant)
        return None if wrapped is None else self._learn(tenant, wrapped)

    def _fresh(self, tenant: str) -> bytes:
        """A new key for a tenant, wrapped by the root."""
        nonce = os.urandom(NONCE_BYTES)
        wrapping = AESGCM(self._derive(tenant, "wrap"))
        return nonce + wrapping.encrypt(nonce, AESGCM.generate_key(256), _joined((tenant,)))

    def _learn(self, tenant: str, wrapped: bytes) -> tuple[AESGCM, bytes, bytes]:
        try:
            key = self._unwrapped(tenant, wrapped)
        except InvalidTag:
            raise StoreError(
                "the key file does not belong to this database; put back the one it was made with"
            ) from None
        self._wrapped[tenant] = wrapped
        self._commitments.pop(tenant, None)  # of a key that was erased meanwhile
        found = self._data[tenant] = (AESGCM(key), _joined((tenant,)), key)
        return found

    def _unwrapped(self, tenant: str, wrapped: bytes) -> bytes:
        wrapping = AESGCM(self._derive(tenant, "wrap"))
        return wrapping.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], _joined((tenant,)))

    def _commitment_key(self, tenant: str) -> bytes:
        """Of the tenant's data key, so that erasing it leaves nothing to guess commitments with."""
        _, _, key = self._cipher(tenant)  # known from now on, so that its erasure is noticed
        return _stretched(key, ("holdfast.key.1", "commitment", tenant))

    def _mac(self, tenant: str, purpose: str, data: bytes) -> str:
        keyed = self._macs.get((tenant, purpose))
        if keyed is None:
            keyed = self._macs[tenant, purpose] = _Mac(self._derive(tenant, purpose))
        return keyed.of(data)

    def _derive(self, tenant: str, purpose: str) -> bytes:
        return _stretched(self._root, ("holdfast.key.1", purpose, tenant))


class _Mac:
    """HMAC-SHA-256 (RFC 2104) under one key, from two states that know it: a third of what `hmac` takes."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        """`key` is no longer than a block."""
        block = key.ljust(hashlib.sha256().block_size, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def of(self, data: bytes) -> str:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.hexdigest()


_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


class Nonces:
    """Random nonces, fetched many at a time: each system call would let other threads run."""

    AT_ONCE = 256

    def __init__(self) -> None:
        self._left: list[bytes] = []
        self._forks = _forks

    def next(self) -> bytes:
        if not self._left or self._forks != _forks:  # a forked child must not repeat its parent's
            self._forks = _forks
            fetched = os.urandom(NONCE_BYTES * self.AT_ONCE)
            self._left = [fetched[at : at + NONCE_BYTES] for at in range(0, len(fetched), NONCE_BYTES)]
        return self._left.pop()


def _stretched(secret: bytes, purpose: Sequence[str]) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=_joined(purpose)).derive(secret)


def _joined(parts: Sequence[str]) -> bytes:
    """Each part after its length: no two lists run together into the same bytes."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(8, "big") + part for part in encoded)


def root_secret(path: Path) -> bytes:
    """The secret in the key file at `path`, made now if there is none."""
    if not path.exists():
        _create(path)
    return read_root(path)


def read_root(path: Path) -> bytes:
    """The secret in a file, which nobody else may read."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise StoreError(
            f"the key file '{path}' can be read by others (mode {mode:o}); run: chmod 600 '{path}'"
        )
    root = parse_root(path.read_text(errors="replace"))
    if root is None:
        raise StoreError(f"the key file '{path}' is damaged; put it back from a backup")
    return root


def parse_root(text: str) -> bytes | None:
    """A secret as a key file has it, or as 64 hexadecimal digits; None for anything else."""
    try:
        said = orjson.loads(text)["root"] if text.lstrip().startswith("{") else text
        root = bytes.fromhex(said.strip())
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return root if len(root) == ROOT_BYTES else None


def _create(path: Path) -> None:
    """Of several starters one wins, and nobody ever sees half a file."""
    text = orjson.dumps({"version": 1, "root": secrets.token_hex(ROOT_BYTES)})
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, text)
        os.fsync(file)
    finally:
        os.close(file)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    sync(path.parent)  # a key that a power cut takes away takes every payload with it, whoever made it
