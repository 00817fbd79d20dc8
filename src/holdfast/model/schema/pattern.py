"""Is this regular expression safe to run on what strangers send?

Ours run on a linear engine, which has no lookaround and no backreference, so none of them can explode here.
The schema is shown to clients whose engines backtrack, so what explodes there is refused as well; and the
size a pattern unfolds to is bounded, because the linear engine pays for it when it compiles.
"""

import re
from dataclasses import dataclass

MAX_LENGTH = 512
MAX_WEIGHT = 32_768
"""Unfolded size of all patterns of one schema together; about 50 ms of compiling."""
_MAX_GROUPS = 20

_QUANTIFIER = re.compile(r"([*+?]|\{(\d{1,6})(,(\d{0,6}))?\})[?+]?")
_GROUP = re.compile(r"\((\?(?:[:=!]|<[=!]|<\w+>|P<\w+>|[a-z-]*[:)])?)?")
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|.)|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c.|k<\w+>|.)", re.S
)
_CLASS = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.S)
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")
# How many states of the compiled automaton an atom costs, measured; a Unicode class has hundreds of ranges.
_WIDE, _UNICODE = 8, 200


class Hostile(ValueError):
    """Why a pattern is refused."""


@dataclass(slots=True)
class _Item:
    text: str
    weight: int = 1
    repeats: bool = False
    """Without an upper bound."""
    optional: bool = False
    any_character: bool = False
    group: "list[list[_Item]] | None" = None


@dataclass(slots=True)
class _Reader:
    pattern: str
    position: int = 0
    depth: int = 0

    def alternatives(self) -> list[list[_Item]]:
        read: list[list[_Item]] = [[]]
        while self.position < len(self.pattern) and self.pattern[self.position] != ")":
            if self.pattern[self.position] == "|":
                self.position += 1
                read.append([])
            else:
                read[-1].append(self._quantified(self._atom()))
        return read

    def _atom(self) -> _Item:
        rest = self.pattern[self.position]
        if rest == "(":
            return self._group()
        for shape in (_ESCAPE, _CLASS):
            if found := shape.match(self.pattern, self.position):
                self.position = found.end()
                return _plain(found.group())
        self.position += 1
        return _plain(rest)

    def _group(self) -> _Item:
        opening = _GROUP.match(self.pattern, self.position)
        prefix = opening.group() if opening else "("
        if prefix in _LOOKAROUND:
            raise Hostile("looks ahead or behind, which no linear engine can; say it with allOf or not")
        start, self.position, self.depth = self.position, self.position + len(prefix), self.depth + 1
        if self.depth > _MAX_GROUPS:
            raise Hostile(f"nests more than {_MAX_GROUPS} groups")
        if prefix.endswith(")"):  # flags such as (?i)
            self.depth -= 1
            return _Item(prefix, 0)
        inner = self.alternatives()
        self.depth -= 1
        self.position += 1
        text = self.pattern[start + len(prefix) : self.position - 1]
        return _Item(text, sum(i.weight for branch in inner for i in branch), group=inner)

    def _quantified(self, item: _Item) -> _Item:
        while found := _QUANTIFIER.match(self.pattern, self.position):  # a{9}{9} is legal, and means 81
            self.position = found.end()
            item = _repeated(item, found)
        return item


def _repeated(item: _Item, found: re.Match[str]) -> _Item:
    sign, low, comma, high = found.group(1)[0], found.group(2), found.group(3), found.group(4)
    bounded = sign == "?" or (low is not None and (comma is None or bool(high)))
    times = int((high or low) if low is not None else 1)
    if not bounded and item.group is not None:
        _refuse_ambiguous(item.group)
    return _Item(
        item.text,
        item.weight * max(1, times, int(low or 0)),
        repeats=item.repeats or not bounded,
        optional=item.optional or sign in "*?" or low == "0",
        any_character=item.any_character,
        group=item.group,
    )


def weigh(pattern: str) -> int:
    """How large the pattern is when unfolded; raises Hostile."""
    if len(pattern) > MAX_LENGTH:
        raise Hostile(f"is longer than {MAX_LENGTH} characters")
    reader = _Reader(pattern)
    read = reader.alternatives()
    weight = sum(item.weight for branch in read for item in branch)
    if weight > MAX_WEIGHT:
        raise Hostile("unfolds to too large an automaton; use maxLength or maxItems for counting")
    return weight


def _plain(text: str) -> _Item:
    if re.fullmatch(r"\\(?:[1-9]|k<\w+>)", text):
        raise Hostile("refers back to a group, which no linear engine can; write it out")
    if re.search(r"\\[pP]", text):
        return _Item(text, _UNICODE)
    wide = text == "." or text.startswith("[^") or bool(re.search(r"\\[DWS]", text))
    return _Item(
        text, _WIDE if wide else 1, any_character=text in (".", r"[\s\S]", r"[\d\D]", r"[\w\W]", "[^]")
    )


def _refuse_ambiguous(branches: list[list[_Item]]) -> None:
    """A repeated group whose body can be cut in two ways: (a+)+, (.*a)*, (a|aa)+."""
    texts = sorted(("".join(item.text for item in branch) for branch in branches), key=len)
    doubled = any(
        not longer.replace(shorter, "")
        for i, shorter in enumerate(texts)
        if shorter
        for longer in texts[i + 1 :]
    )
    greedy = any(item.any_character and item.repeats for branch in branches for item in branch)
    if doubled or greedy or any(map(_stretches, branches)):
        raise Hostile(
            "repeats a repetition, which explodes in a backtracking engine; put a separator between"
        )


def _stretches(branch: list[_Item]) -> bool:
    """Whether nothing in it is fixed, and something in it repeats."""
    return all(map(_loose, branch)) and any(map(_repeats, branch))


def _loose(item: _Item) -> bool:
    return item.repeats or item.optional or (item.group is not None and any(map(_stretches, item.group)))


def _repeats(item: _Item) -> bool:
    return item.repeats or (item.group is not None and any(_repeats(i) for b in item.group for i in b))
