"""What does an entry of a client's file say?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

REMOTE = {"http": "http", "streamable-http": "http", "streamableHttp": "http", "sse": "sse"}
URLS = ("url", "serverUrl", "httpUrl")
KNOWN = {
    "command", "args", "env", "envFile", "cwd", "type", "transport", "headers", "disabled", "enabled",
    "source", "description", "name", *URLS,
}  # fmt: skip
"""Members that are read, or say nothing that a gateway would have to do."""


class Misread(ValueError):
    """This entry is of no known form; says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    env_file: str | None = None
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    transport: str | None = None
    """`http` or `sse`, where the entry says which."""
    dropped: tuple[str, ...] = ()
    """Members that have no place in a gateway's configuration."""


def disabled(entry: Any) -> bool:
    return isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False)


def is_gateway(entry: Any) -> bool:
    """Whether an entry starts Holdfast itself, or leads to it."""
    if not isinstance(entry, dict):
        return False
    args = [str(word) for word in entry.get("args") or ()] if isinstance(entry.get("args"), list) else []
    started = PurePath(str(entry.get("command", "")).replace("\\", "/")).name
    headers = entry.get("headers")
    if isinstance(headers, dict) and "X-Holdfast-Agent" in headers:
        return True
    if started.removesuffix(".exe") == "holdfast":
        return args[:1] == ["stdio"]
    return args[:3] == ["-m", "holdfast", "stdio"]


def read(name: str, entry: Any) -> Server:
    """Raises Misread."""
    if not isinstance(entry, dict):
        raise Misread("it must be an object with 'command' or 'url'")
    entry = _flat(entry)
    kind = entry.get("type") or entry.get("transport")
    url = next((entry[key] for key in URLS if entry.get(key)), None)
    dropped = tuple(key for key in entry if key not in KNOWN)
    if entry.get("command") and kind in (None, "stdio"):
        return Server(
            name,
            command=_text(entry["command"], "command"),
            args=_list(entry.get("args") or [], "args"),
            env=_texts(entry.get("env") or {}, "env"),
            env_file=_text(entry["envFile"], "envFile") if entry.get("envFile") else None,
            cwd=_text(entry["cwd"], "cwd") if entry.get("cwd") else None,
            dropped=dropped,
        )
    if url is not None and (kind is None or kind in REMOTE):
        return Server(
            name,
            url=_text(url, "url"),
            headers=_texts(entry.get("headers") or {}, "headers"),
            transport=REMOTE.get(str(kind)),
            dropped=dropped,
        )
    if kind is not None and kind != "stdio" and kind not in REMOTE:
        raise Misread(f"its type {kind!r} is not one of 'stdio', 'http', 'sse'")
    raise Misread("it has neither 'command' nor 'url'")


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """Zed once wrote `command: {path, args, env}`."""
    inner = entry.get("command")
    if not isinstance(inner, dict):
        return entry
    return {**entry, **inner, "command": inner.get("path")} if "path" in inner else entry


def _list(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Misread(f"its {what!r} must be a list")
    return tuple(_text(item, what) for item in value)


def _texts(value: Any, what: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Misread(f"its {what!r} must be an object")
    return {_text(key, what): _text(item, what) for key, item in value.items() if item is not None}


def _text(value: Any, what: str) -> str:
    """Numbers and truth values are written as text where clients take them as such."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise Misread(f"its {what!r} holds something that is not text")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise Misread(f"its {what!r} holds characters that no process can be given")
    return value
