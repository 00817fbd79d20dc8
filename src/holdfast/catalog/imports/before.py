"""Which contracts were made before, to be had by their digest?

Making a contract of a descriptor takes a millisecond or two, so a thousand tools would keep a start waiting.
What was made is kept beside the lock file. It vouches for nothing by itself: the lock file names the digest
of what was accepted, and only that very contract is taken, from a file that the same code has written.
Whoever removes the file loses a second at the next start.
"""

import contextlib
import logging
import os
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path

from pydantic import ValidationError

from holdfast.model.contract import Contract
from holdfast.model.schema.examination import vouch

log = logging.getLogger(__name__)

_RULES = ("catalog", "model")
"""Packages whose code decides what contract is made of a descriptor."""
MOST_BYTES = 256 << 20
"""A larger file is none of ours."""


class Before:
    """Contracts by digest, as an earlier process wrote them down."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}
        self._read: dict[str, Contract] = {}

    def find(self, digest: str) -> Contract | None:
        if digest not in self._read and (text := self._written.get(digest)) is not None:
            found = _contract(text)
            if found is not None and found.digest == digest:
                _vouch_for_schemas(found)
                self._read[digest] = found
        return self._read.get(digest)

    def load(self, lock: Path) -> None:
        """What was kept beside this lock file; nothing where it cannot be used."""
        path = _beside(lock)
        try:
            lines = path.read_bytes().split(b"\n") if path.stat().st_size <= MOST_BYTES else [b""]
        except OSError:
            return
        if lines[0] == _rules():
            pairs = (line.partition(b" ") for line in lines[1:] if line)
            self._written = {digest.decode("ascii", "replace"): contract for digest, _, contract in pairs}

    def save(self, lock: Path, contracts: Iterable[Contract]) -> None:
        """Keep these for the next start, if they are others than those that were found."""
        made = {contract.digest: contract for contract in contracts}
        self._read.clear()  # they are in the catalog now
        if made.keys() == self._written.keys():
            return
        texts = {digest: contract.model_dump_json().encode() for digest, contract in sorted(made.items())}
        path = _beside(lock)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        lines = (b"%b %b" % (digest.encode(), text) for digest, text in texts.items())
        try:
            fresh.write_bytes(b"\n".join((_rules(), *lines)) + b"\n")
            fresh.replace(path)
        except OSError as error:
            log.debug("%s is not written, so the next start takes longer: %s", path.name, error)
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            return
        self._written = texts


def _contract(text: bytes) -> Contract | None:
    try:
        return Contract.model_validate_json(text, strict=True)
    except ValidationError:
        return None


def _vouch_for_schemas(contract: Contract) -> None:
    face = contract.affordance
    for schema in (face.input_schema, face.output_schema, contract.error_contract.error_schema):
        vouch(schema)


def _beside(lock: Path) -> Path:
    return lock.with_name(f"{lock.name}.cache")


@cache
def _rules() -> bytes:
    """Changes with the code that makes contracts."""
    summed = blake2b(digest_size=16)
    root = Path(__file__).resolve().parents[2]
    for package in _RULES:
        for path in sorted((root / package).rglob("*.py")):
            summed.update(b"%b\0%b\0" % (path.name.encode(), path.read_bytes()))
    return summed.hexdigest().encode()
