"""Where in a Cedar file does something stand?

Cedar's parser says what is wrong and not where, so a file is cut into its policies first, each with its
place.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from cedarpy import PolicySet

TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*)"
    r'|(?P<string>"(?:\\.|[^"\\])*")'
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>\d+)"
    r"|(?P<sign>::|==|!=|<=|>=|&&|\|\||.)",
    re.DOTALL,
)
ENDS_EARLY = "unexpected end of input"
LOOKED_AT = 1_000
"""Words of one policy that are tried one by one to find a fault."""


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Statement:
    """One policy as it is written, annotations and all."""

    file: str
    text: str
    line: int
    column: int

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Only looked at where something is wrong."""
        found = (one for one in TOKEN.finditer(self.text) if one.lastgroup != "skip")
        return tuple(Token(one[0], one.start(), one.end()) for one in found)

    @property
    def place(self) -> Place:
        return Place(self.file, self.line, self.column)

    def find(self, word: str) -> Place:
        """Where a name stands, as a word or as a string; where the policy starts when it does not."""
        for token in self.tokens:
            if token.text in (word, f'"{word}"'):
                return self.at(token.start)
        return self.place

    def at(self, offset: int) -> Place:
        before = self.text[:offset]
        lines = before.count("\n")
        column = offset - before.rfind("\n") if lines else offset + self.column
        return Place(self.file, self.line + lines, column)

    def first_fault(self) -> Place:
        """The word at which no policy can go on: up to there, only the end comes too early."""
        for token in self.tokens[:LOOKED_AT]:
            fault = _fault(self.text[: token.end])
            if fault is not None:
                whole = token is self.tokens[-1] and "token" not in fault
                return self.place if whole else self.at(token.start)
        return self.place


def statements(file: str, text: str) -> Iterator[Statement]:
    """The policies of a file in order; what is left at its end without a `;` is one too."""
    start, end = -1, 0
    line, counted = 1, 0
    for found in TOKEN.finditer(text):
        if found.lastgroup == "skip":
            continue
        end = found.end()
        if start < 0:  # counted on from the last policy: from the start, a long file takes for ever
            start = found.start()
            line, counted = line + text.count("\n", counted, start), start
        if found[0] == ";":
            yield _statement(file, text, start, end, line)
            start = -1
    if start >= 0:
        yield _statement(file, text, start, end, line)


def _statement(file: str, text: str, start: int, end: int, line: int) -> Statement:
    return Statement(file, text[start:end], line, start - text.rfind("\n", 0, start))


def _fault(text: str) -> str | None:
    try:
        PolicySet.from_str(text)
    except ValueError as error:
        return None if ENDS_EARLY in str(error) else str(error)
    return None
