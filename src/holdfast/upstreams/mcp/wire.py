"""How does a JSON-RPC message look in bytes?

Whatever comes is kept: numbers that do not fit 64 bits are not rounded, members nobody knows are not dropped.
"""

import json
from typing import Any, NoReturn

import orjson

from holdfast.upstreams.mcp.errors import Garbage, Refused

ANSWER_BYTES = 16 * 1024 * 1024
"""The largest message a server may send: far beyond what a model can read, far below what hurts a process."""

_DIGITS_ALIKE = bytes(ord("0") if chr(byte) in "0123456789" else ord(" ") for byte in range(256))
_LONG = b"0" * 19
"""More digits than orjson keeps exactly; looking for them among digits made alike is a tenth of a regex."""


def encoded(message: Any) -> bytes:
    try:
        return orjson.dumps(message)
    except TypeError:  # an integer beyond 64 bits
        return json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()


def decoded(raw: bytes | bytearray) -> Any:
    """Raises ValueError."""
    if _LONG in raw.translate(_DIGITS_ALIKE):
        try:
            return json.loads(raw, parse_constant=_no_number)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    return orjson.loads(raw)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def asked(number: int | str, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
    if params is not None:
        message["params"] = params
    return message


def noted(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def outcome(message: dict[str, Any], status: int | None = None) -> dict[str, Any]:
    """The result in an answer; raises what the answer says instead."""
    result = message.get("result")
    if isinstance(result, dict) and "error" not in message:
        return result
    error = message.get("error")
    if isinstance(error, dict) and isinstance(code := error.get("code"), int):
        raise Refused(code, str(error.get("message", "")), error.get("data"), status)
    raise Garbage("the server's answer has neither a result nor an error that can be read")


def is_answer(message: dict[str, Any]) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def number_of(message: dict[str, Any]) -> int | None:
    """Which of our requests an answer is for; some servers turn numbers into strings."""
    found = message.get("id")
    if isinstance(found, bool):
        return None
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 19:
        return int(found)
    return found if isinstance(found, int) else None
