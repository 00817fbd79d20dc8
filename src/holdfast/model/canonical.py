"""Which bytes stand for this value, however it was written?

RFC 8785 (JSON Canonicalization Scheme), with these rules written down:

- Integers beyond +-(2**53 - 1) are refused: two readers could disagree about them. Send them as strings.
- Numbers are IEEE 754 doubles: 1.0 is written `1`, so 1 and 1.0 have one fingerprint; -0.0 is `0`.
- NaN and the infinities are refused.
- Unicode is left alone: no normalisation, so "é" in one or in two code points are two values. A lone
  surrogate cannot be written in UTF-8 and is refused.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import orjson
import rfc8785

from holdfast.model.fields import pointer

SAFE_INTEGER = 2**53 - 1

_DOMAIN = b"holdfast.fingerprint.1"


class NotCanonical(ValueError):
    """The value has no canonical form; `path` says where."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


def canonical(value: Any) -> bytes:
    """The one byte string of a JSON value; raises NotCanonical where there is none."""
    try:
        if _plain(value):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (RecursionError, orjson.JSONEncodeError):
        pass  # too deep for it, or not UTF-8: the careful way below says which
    try:
        _refuse(value, ())
        return rfc8785.dumps(value)
    except RecursionError:
        raise NotCanonical("nested too deeply to be written; flatten it") from None


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def fingerprint(contract_digest: str, arguments: Mapping[str, Any] | bytes) -> str:
    """What a call is, apart from its key: this contract with these arguments (or their canonical form).

    Each part is preceded by its length, so no two pairs run together into the same bytes.
    """
    hashed = hashlib.sha256()
    body = arguments if isinstance(arguments, bytes) else canonical(dict(arguments))
    for part in (_DOMAIN, contract_digest.encode(), body):
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.hexdigest()


def _plain(value: Any) -> bool:
    """Whether sorted orjson is RFC 8785 here: exact JSON types, ASCII keys, safe integers, no floats.

    ASCII because the RFC sorts keys by UTF-16 and orjson by UTF-8; exact types because orjson also writes
    dates, UUIDs and dataclasses, and NaN as null.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(-SAFE_INTEGER <= value <= SAFE_INTEGER)
    if kind is dict:
        for key, member in value.items():
            if not (type(key) is str and key.isascii()):
                return False
            if type(member) is not str and not _plain(member):
                return False
        return True
    if kind is list:
        return all(map(_plain, value))
    return False


def _refuse(value: Any, path: tuple[str | int, ...]) -> None:
    match value:
        case bool() | None:
            return
        case str():
            _refuse_surrogates(value, path)
        case int():
            if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
                at = pointer(path)
                raise NotCanonical(f"integer at '{at}' is beyond 2**53 - 1; send it as a string", at)
        case float():
            if not math.isfinite(value):
                raise NotCanonical(f"'{value}' at '{pointer(path)}' is not a JSON number", pointer(path))
        case list() | tuple():
            for index, item in enumerate(value):
                _refuse(item, (*path, index))
        case dict():
            for key, member in value.items():
                if not isinstance(key, str):
                    raise NotCanonical(f"key '{key!r}' at '{pointer(path)}' is not a string", pointer(path))
                _refuse_surrogates(key, path)
                _refuse(member, (*path, key))
        case _:
            kind = type(value).__name__
            raise NotCanonical(f"'{kind}' at '{pointer(path)}' is not a JSON value", pointer(path))


def _refuse_surrogates(text: str, path: tuple[str | int, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        where = pointer(path).encode("utf-8", "replace").decode()
        raise NotCanonical(f"lone surrogate in a string at '{where}'; send valid Unicode", where) from None
