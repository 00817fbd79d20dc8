"""Where in a JSON text is each value?

Clients write comments and commas too many into their files, and people do so by hand: neither is a fault.
Places are kept so that one value can be replaced and the rest of the file stays as it is, byte for byte.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.model.errors import ConfigError

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|true\b|false\b|null\b")
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4}).?')
_MARK = "\ufeff"
MOST_DEEP = 100
"""No client nests its settings like this; it keeps a hostile file from exhausting the stack."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: `text[start:end]`."""

    start: int
    end: int
    plain: Any = None
    """A string, a number, a truth value or null."""
    members: "tuple[Member, ...] | None" = None
    items: "tuple[Node, ...] | None" = None

    @property
    def value(self) -> Any:
        if self.members is not None:
            return {member.key: member.node.value for member in self.members}
        return self.plain if self.items is None else [item.value for item in self.items]

    @property
    def keys(self) -> list[str]:
        return [member.key for member in self.members or ()]

    def find(self, *path: str) -> "Node | None":
        """What stands at a path of keys; raises ConfigError where a key on it is given twice."""
        here = self
        for key in path:
            found = [member.node for member in here.members or () if member.key == key]
            if not found:
                return None
            if len(found) > 1:
                raise ConfigError(f"{key!r} is given twice; remove one of them")
            here = found[0]
        return here

    def twice(self) -> Iterator[str]:
        """Keys that are given more than once, here or below."""
        for key in dict.fromkeys(self.keys):
            if self.keys.count(key) > 1:
                yield key
        for below in (*(member.node for member in self.members or ()), *(self.items or ())):
            yield from below.twice()


@dataclass(frozen=True, slots=True)
class Member:
    start: int
    """Where its key begins."""
    key: str
    node: Node


def parse(text: str) -> Node:
    """Raises ConfigError with line and column."""
    return _Reader(text).whole()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = len(_MARK) if text.startswith(_MARK) else 0

    def whole(self) -> Node:
        self._skip()
        node = self._value(0)
        self._skip()
        if self.at < len(self.text):
            raise self._fault("something follows the end of the file's one value")
        return node

    def _value(self, depth: int) -> Node:
        if depth > MOST_DEEP:
            raise self._fault("it is nested too deep")
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._text()
            case "":
                raise self._fault("it ends too early")
            case _:
                return self._word()

    def _text(self) -> Node:
        start, value = self.at, self._string()
        return Node(start, self.at, value)

    def _word(self) -> Node:
        found = _PLAIN.match(self.text, self.at)
        if found is None:
            raise self._fault(f"a value cannot begin with {self.text[self.at]!r}")
        start, self.at = self.at, found.end()
        return Node(start, self.at, json.loads(found[0]))

    def _object(self, depth: int) -> Node:
        start = self.at
        members: list[Member] = []
        for _ in self._each("}"):
            place = self.at
            if not self.text.startswith('"', place):
                raise self._fault("a key in double quotes is missing")
            key = self._string()
            self._skip()
            self._take(":")
            self._skip()
            members.append(Member(place, key, self._value(depth + 1)))
        return Node(start, self.at, members=tuple(members))

    def _array(self, depth: int) -> Node:
        start = self.at
        items = [self._value(depth + 1) for _ in self._each("]")]
        return Node(start, self.at, items=tuple(items))

    def _each(self, close: str) -> Iterator[None]:
        """Stands at each element in turn, and after the closing bracket at the end."""
        self.at += 1
        self._skip()
        while not self.text.startswith(close, self.at):
            yield
            self._skip()
            if not self.text.startswith(close, self.at):
                self._take(",")
                self._skip()
        self.at += 1

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self._fault("a string does not end on its line")
        if wrong := _BAD_ESCAPE.search(re.sub(r'\\[\\"]', "  ", found[0])):
            self.at += wrong.start()
            raise self._fault(f"'{wrong[0]}' is no escape; write a backslash as '\\\\'")
        self.at = found.end()
        value: str = json.loads(found[0])
        return value

    def _take(self, character: str) -> None:
        if not self.text.startswith(character, self.at):
            raise self._fault(f"{character!r} is missing")
        self.at += 1

    def _skip(self) -> None:
        if found := _SPACE.match(self.text, self.at):
            self.at = found.end()

    def _fault(self, what: str) -> ConfigError:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        return ConfigError(f"line {line}, column {column}: {what}")
