"""Is this text JSON that everybody reads the same way, and small enough to be read at all?

Size, depth, string length and count are checked before anything is built. Duplicate keys, NaN, numbers that
overflow, lone surrogates and broken UTF-8 are refused: two readers could see two different calls.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

import orjson

from holdfast.model.fields import pointer

CodeHint = Literal["syntax", "limits"]

# One token at a time, each at most once: possessive, so an unclosed string costs one pass and no more.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int = 1 << 20
    max_depth: int = 32
    """Containers inside one another; a scalar has depth 0."""
    max_string: int = 256 << 10
    """UTF-8 bytes of one string or key."""
    max_keys: int = 10_000
    """Members of all objects and items of all arrays together."""


DEFAULT_LIMITS = Limits()


class ParseError(ValueError):
    """Not acceptable as JSON: bad syntax, or beyond the limits."""

    def __init__(self, code_hint: CodeHint, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code_hint = code_hint
        self.message = message
        self.path = path


_OTHERWISE: Any = object()


def parse(raw: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The value of a JSON text; raises ParseError."""
    try:
        data = raw.encode() if isinstance(raw, str) else raw
        value = _plainly(data, limits)
    except (ValueError, TypeError):  # whatever is wrong with it, the careful way says so
        value = _OTHERWISE
    return _carefully(raw, limits) if value is _OTHERWISE else value


def surely_fits(data: bytes, limits: Limits) -> bool:
    """Whether what this JSON text stands for is within the limits without a look at its tokens."""
    return len(data) <= limits.max_bytes and not _may_exceed(data, limits)


def _plainly(data: bytes, limits: Limits) -> Any:
    """The value of a text that is written as most programs write it, or `_OTHERWISE`.

    Written again, the value must give the same text, but for blanks after commas and colons. Then no member
    was lost to another of the same name, and every number was read as it is written: a text with a duplicate
    key has more members than its value, and leaving out blanks there changes the number of members in neither
    (inside a string it changes the string, on both sides alike).
    """
    if not surely_fits(data, limits):
        return _OTHERWISE
    value = orjson.loads(data)
    again = orjson.dumps(value)
    if again == data or _squeezed(again) == _squeezed(data):
        return value
    return _OTHERWISE


def _squeezed(data: bytes) -> bytes:
    return data.replace(b", ", b",").replace(b": ", b":")


def _carefully(raw: bytes | str, limits: Limits) -> Any:
    data, text = _both_forms(raw, limits)
    if _may_exceed(data, limits):
        _scan(data, limits)
    try:
        value = _DECODER.decode(text)
    except _Duplicate as duplicate:
        path = _find_duplicate(text)
        raise ParseError("syntax", f"key {_quoted(duplicate.key)} appears twice at '{path}'", path) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ParseError("syntax", f"not valid JSON at {where}: {_lower(error.msg)}") from None
    except (ValueError, RecursionError) as error:
        raise ParseError("syntax", _lower(str(error))) from None
    if _SURROGATE_ESCAPE.search(data):
        check(value, limits)
    return value


def check(value: Any, limits: Limits = DEFAULT_LIMITS) -> None:
    """Hold a value that was never text to the same limits; raises ParseError."""
    total, text_bytes = 0, 0
    stack: list[tuple[Any, int, _Path]] = [(value, 0, None)]
    while stack:
        item, depth, path = stack.pop()
        if isinstance(item, str):
            text_bytes += _string_bytes(item, limits, path)
            if text_bytes > limits.max_bytes:
                raise ParseError("limits", f"larger than {limits.max_bytes} bytes; send less", _pointer(path))
        elif isinstance(item, dict | list | tuple):
            total += len(item)
            _refuse_depth_and_count(depth + 1, total, limits, path)
            for step, child in _members(item, limits, path):
                stack.append((child, depth + 1, (path, step)))
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise ParseError("syntax", f"'{item}' is not a JSON number", _pointer(path))
        elif not (item is None or isinstance(item, bool | int)):
            raise ParseError("syntax", f"'{type(item).__name__}' is not a JSON value", _pointer(path))


_Path: TypeAlias = "tuple[_Path, str | int] | None"
"""Innermost step last, shared with its siblings: a path costs nothing until somebody asks for it."""


def _pointer(path: _Path) -> str:
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return pointer(reversed(steps)).encode("utf-8", "replace").decode()


def _members(item: Any, limits: Limits, path: _Path) -> Iterator[tuple[str | int, Any]]:
    if not isinstance(item, dict):
        yield from enumerate(item)
        return
    for key, member in item.items():
        if not isinstance(key, str):
            raise ParseError("syntax", f"key '{key!r}' is not a string", _pointer(path))
        _string_bytes(key, limits, path)
        yield key, member


def _string_bytes(text: str, limits: Limits, path: _Path) -> int:
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise ParseError("syntax", "lone surrogate in a string; send valid Unicode", _pointer(path)) from None
    if size > limits.max_string:
        raise ParseError("limits", f"a string is longer than {limits.max_string} bytes", _pointer(path))
    return size


def _refuse_depth_and_count(depth: int, total: int, limits: Limits, path: _Path) -> None:
    if depth > limits.max_depth:
        raise ParseError("limits", f"nested deeper than {limits.max_depth}; flatten it", _pointer(path))
    if total > limits.max_keys:
        raise ParseError("limits", f"more than {limits.max_keys} keys and items; send fewer", _pointer(path))


def _both_forms(raw: bytes | str, limits: Limits) -> tuple[bytes, str]:
    if len(raw) > limits.max_bytes:
        raise ParseError("limits", f"larger than {limits.max_bytes} bytes; send less")
    try:
        data = raw if isinstance(raw, bytes) else raw.encode()
        text = raw if isinstance(raw, str) else raw.decode()
    except UnicodeError:
        raise ParseError("syntax", "not valid UTF-8; encode the text as UTF-8") from None
    if len(data) > limits.max_bytes:
        raise ParseError("limits", f"larger than {limits.max_bytes} bytes; send less")
    if text.startswith("\ufeff"):
        raise ParseError("syntax", "starts with a byte order mark; send it without")
    return data, text


def _may_exceed(data: bytes, limits: Limits) -> bool:
    """Whether a look at every token is worth it. Bytes inside strings count too, so a no is always right."""
    size, opened = len(data), data.count(b"[") + data.count(b"{")
    if opened > limits.max_depth or size > limits.max_string:
        return True
    return size > limits.max_keys and opened + data.count(b",") > limits.max_keys


def _scan(data: bytes, limits: Limits) -> None:
    depth, total, opened_at = 0, 0, -1
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        closes = first in b"]}"
        # A container has one item more than commas, unless nothing at all stands in it.
        if opened_at >= 0 and not (closes and not data[opened_at : token.start()].strip()):
            total += 1
        opened_at = -1
        if first in b"[{":
            depth, opened_at = depth + 1, token.end()
        elif closes:
            depth -= 1
        elif first == ord(","):
            total += 1
        elif token.end() - token.start() - 2 > limits.max_string:
            _string_bytes(_unescape(token.group()), limits, None)
        _refuse_depth_and_count(depth, total, limits, None)


def _unescape(token: bytes) -> str:
    try:
        return str(json.loads(token)).encode("utf-8", "replace").decode()
    except ValueError:
        return ""  # not a string after all: the parser says why


class _Duplicate(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Duplicate(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return members


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"number '{text[:40]}' is too large for a double")
    return number


def _constant(text: str) -> NoReturn:
    raise ValueError(f"'{text}' is not JSON; leave it out or send null")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


class _Pairs(list[tuple[str, Any]]):
    """An object read without losing its duplicates."""


def _find_duplicate(text: str) -> str:
    try:
        whole = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return ""  # what follows the duplicate is broken too
    stack: list[tuple[Any, tuple[str | int, ...]]] = [(whole, ())]
    while stack:
        value, path = stack.pop()
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, member in value:
                if key in seen:
                    return pointer((*path, key)).encode("utf-8", "replace").decode()
                seen.add(key)
                stack.append((member, (*path, key)))
        elif isinstance(value, list):
            stack.extend((item, (*path, index)) for index, item in enumerate(value))
    return ""


def _quoted(key: str) -> str:
    shown = key if len(key) <= 64 else key[:61] + "..."
    return "'" + shown.encode("utf-8", "replace").decode() + "'"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
