"""Does what somebody holds cover what is asked for, and what is left when two limits meet?

A scope is words separated by `:` or `/`, such as `orders:read`. In a pattern `*` stays
inside one word, alone or as a part of it, and `**` stands for one or more words with
whatever separates them. Narrowing is by `intersect`, which never gives more than either
side holds: where the exact common part is no pattern, it gives less (AUT-5).
"""

import re
from collections.abc import Iterable
from functools import lru_cache

SEPARATORS = ":/"
SCOPE = re.compile(r"[A-Za-z0-9._*-]+(?:[:/]+[A-Za-z0-9._*-]+)*")
LONGEST = 256
MOST_CROSSINGS = 2
"""`**` in one pattern; each more would double the work of meeting another pattern."""
MOST_WORDS = 16
MOST_COMMON = 32
"""Ways in which two patterns meet that are kept: agents write patterns, so what meeting costs is bounded."""
MOST_STEPS = 4096
"""Pairs of words that are compared where patterns of two sets overlap and neither contains the other."""
MOST_LEFT = 64
"""Patterns that are kept where two sets are multiplied; a set that only gets smaller is kept whole."""

Words = tuple[str, ...]


def check(pattern: str) -> str | None:
    """What is wrong with a pattern, or None."""
    if not SCOPE.fullmatch(pattern) or len(pattern) > LONGEST:
        return f"{pattern!r} is no scope; write words of letters, digits, '.', '_', '-' separated by ':'"
    words = _words(pattern)
    if any("**" in word and word != "**" for word in words):
        return f"'**' stands alone in {pattern!r}; put ':' around it, or use '*' inside a word"
    if len(words) >= 2 * MOST_WORDS:
        return f"{pattern!r} has more than {MOST_WORDS} words; end it with '**'"
    if words.count("**") > MOST_CROSSINGS:
        return f"{pattern!r} has more than {MOST_CROSSINGS} '**'; one is enough to cross words"
    return None


def covers(held: Iterable[str], required: str) -> bool:
    """Whether one held pattern allows all of what is required."""
    return any(within(required, pattern) for pattern in held)


@lru_cache(maxsize=8192)  # every call asks this, about few callers and few tools
def covers_all(held: frozenset[str], required: tuple[str, ...]) -> bool:
    return all(covers(held, scope) for scope in required)


@lru_cache(maxsize=8192)
def within(narrow: str, wide: str) -> bool:
    """Whether everything `narrow` stands for is in `wide`; when in doubt, no."""
    pattern = _words(wide)
    reached = {0}  # how much of the pattern is used up, for every way to read it
    for word in _words(narrow):
        then: set[int] = set()
        for at in reached - {len(pattern)}:
            if pattern[at] == "**":
                then |= {at, at + 1}
            elif pattern[at] == word or (word != "**" and _contains(pattern[at], word)):
                then.add(at + 1)
        if not then:
            return False
        reached = then
    return len(pattern) in reached


@lru_cache(maxsize=1024)
def intersect(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """The patterns both sides allow; fewer where finding all of them would take too long."""
    common: set[str] = set()
    overlapping = []
    for a in left:
        for b in right:
            if within(a, b):
                common.add(a)
            elif within(b, a):
                common.add(b)
            elif _may_meet(_words(a), _words(b)):
                overlapping.append((_words(a), _words(b)))
    steps = 0
    for one, other in sorted(overlapping, key=lambda pair: (len(pair[0]) * len(pair[1]), pair)):
        steps += len(one) * len(other)
        if steps > MOST_STEPS:
            break
        common |= {"".join(words) for words in _meet(one, other)}
    most = max(len(left), len(right), MOST_LEFT)
    if len(common) > most:
        common = set(sorted(common, key=lambda one: (len(one), one))[:most])
    return frozenset(a for a in common if not any(a != b and within(a, b) for b in common))


def _may_meet(left: Words, right: Words) -> bool:
    """Whether their ends agree, up to the first and the last `**`."""
    for pairs in (zip(left, right, strict=False), zip(reversed(left), reversed(right), strict=False)):
        for a, b in pairs:
            if "**" in (a, b):
                break
            if _narrower(a, b) is None:
                return False
    return True


@lru_cache(maxsize=8192)
def _words(pattern: str) -> Words:
    """Words and separators, in order; a separator is a word of its own."""
    return tuple(word for word in re.split(r"([:/])", pattern) if word)


@lru_cache(maxsize=65536)
def _meet(left: Words, right: Words) -> frozenset[Words]:
    """Patterns that together stand for what both do: `**` ends here or eats on."""
    if not left or not right:
        return frozenset([()]) if left == right else frozenset()
    a, b = left[0], right[0]
    if a == b == "**":
        rests = [(left[1:], right[1:]), (left[1:], right), (left, right[1:])]
        first: str | None = "**"
    elif a == "**":
        rests, first = [(left[1:], right[1:]), (left, right[1:])], b
    elif b == "**":
        rests, first = [(left[1:], right[1:]), (left[1:], right)], a
    else:
        rests, first = [(left[1:], right[1:])], _narrower(a, b)
    if first is None:
        return frozenset()
    found = frozenset((first, *rest) for pair in rests for rest in _meet(*pair))
    if len(found) > MOST_COMMON:  # those with `**` stand for more
        found = frozenset(sorted(found, key=_narrowness)[:MOST_COMMON])
    return found


def _narrowness(words: Words) -> tuple[int, int, Words]:
    return -words.count("**"), len(words), words


def _narrower(a: str, b: str) -> str | None:
    """The word that the other one contains; None when neither does."""
    if a == b or _contains(b, a):
        return a
    return b if _contains(a, b) else None


def _contains(wide: str, narrow: str) -> bool:
    """Read as text, a `*` of the narrow word is matched only by one of the wide word, so a yes is right."""
    if "*" not in wide or narrow in SEPARATORS:
        return False
    first, *between, last = wide.split("*")
    if len(narrow) < len(first) + len(last) or not narrow.startswith(first) or not narrow.endswith(last):
        return False
    at, end = len(first), len(narrow) - len(last)
    for part in between:  # the first place where it fits leaves the most for the rest: no way back is needed
        at = narrow.find(part, at, end) + len(part)
        if at < len(part):
            return False
    return True
