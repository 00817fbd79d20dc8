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
from functools import lru_cache
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
    plain = plainly(value)
    if plain is not None:
        return plain
    try:
        _refuse(value, ())
        return rfc8785.dumps(value)
    except RecursionError:
        raise NotCanonical("nested too deeply to be written; flatten it") from None


def plainly(value: Any) -> bytes | None:
    """The canonical form of a value that is plain JSON throughout; None where it takes a closer look."""
    try:
        if not _plain(value):
            value = _whole(value)
            if not _plain(value):
                return None
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (RecursionError, orjson.JSONEncodeError):
        return None  # too deep for it, or not UTF-8


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def fingerprint(contract_digest: str, arguments: Mapping[str, Any] | bytes) -> str:
    """What a call is, apart from its key: this contract with these arguments (or their canonical form).

    Each part is preceded by its length, so no two pairs run together into the same bytes.
    """
    body = arguments if isinstance(arguments, bytes) else canonical(dict(arguments))
    whole = b"".join((_head(contract_digest), len(body).to_bytes(8, "big"), body))
    return hashlib.sha256(whole).hexdigest()


@lru_cache(maxsize=4096)
def _head(contract_digest: str) -> bytes:
    parts = (_DOMAIN, contract_digest.encode())
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


_WORDS = frozenset({str, bool, type(None)})


def _plain(value: Any) -> bool:
    """Whether sorted orjson is RFC 8785 here: exact JSON types, ASCII keys, safe integers, plain floats.

    ASCII because the RFC sorts keys by UTF-16 and orjson by UTF-8; exact types because orjson also writes
    dates, UUIDs and dataclasses, and NaN as null. Floats that are whole numbers, very large or very small
    are written differently.
    """
    kind = type(value)
    if kind in _WORDS:
        return True
    if kind is int:
        return bool(-SAFE_INTEGER <= value <= SAFE_INTEGER)
    if kind is dict:
        for key, member in value.items():
            if not (type(key) is str and key.isascii()):
                return False
            if type(member) not in _WORDS and not _plain(member):
                return False
        return True
    if kind is list:
        return all(map(_plain, value))
    return kind is float and 1e-5 <= abs(value) <= SAFE_INTEGER and not value.is_integer()


def _whole(value: Any) -> Any:
    """With whole numbers that came as floats as the integers they are written as; -0.0 is 0."""
    kind = type(value)
    if kind is dict:
        return {key: _whole(member) for key, member in value.items()}
    if kind is list:
        return [_whole(item) for item in value]
    if kind is float and value.is_integer() and abs(value) <= SAFE_INTEGER:
        return int(value)
    return value


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
