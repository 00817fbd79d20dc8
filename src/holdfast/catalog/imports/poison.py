"""Does a descriptor speak to the model behind the user's back?

Three degrees. `hidden`: characters nobody sees, or that move a terminal's cursor; there is no honest reason
for them. `instruction`: text that gives orders to the model rather than describing the tool. `note`: what is
often harmless and worth a look. Patterns are read over the text as it looks: normalised, unseen characters
dropped, look-alikes replaced.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from holdfast.catalog.imports.characters import bidi, controls, deceptive, hidden, latin, visible
from holdfast.model.fields import pointer

Degree = Literal["hidden", "instruction", "note"]

_MAX = 50
_SHOWN = 80
_REMEMBERED_LENGTH = 4096
_FAR = r"[^.!?]{0,60}"

_SECRETS = r"api[ _-]?keys?|passwords?|credentials?|private keys?|environment variables"
_TALK = r"conversation|chat history|system prompt|previous messages"
_CALLING = r"using|calling|invoking|running|use|call|invoke|run"

_ORDERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        (
            "tells the model to ignore its instructions",
            rf"\b(ignore|disregard|forget|override|bypass)\b{_FAR}"
            rf"\b(previous|prior|above|earlier|all|any|other|system|safety|your)\b{_FAR}"
            r"\b(instruction|prompt|rule|message|guideline|guardrail|direction|polic)",
        ),
        (
            "asks for secrecy towards the user",
            rf"\b(do not|don['\u2019]?t|never|must not|without|avoid|no need to)\b{_FAR}"
            r"\b(tell|inform|notify|mention|reveal|disclose|alert|show|say|explain"
            rf"|asking|telling|informing|notifying|mentioning)\w*\b{_FAR}"
            r"\b(user|human|operator|anyone|anybody|person|customer)",
        ),
        (
            "imitates the frame of a prompt",
            r"<\s*/?\s*(important|system|instructions?|secret|hidden|admin|assistant|override|prompt|critical)"
            r"\b[^>]{0,80}>|<\|[a-z_]{2,20}\|>|\[/?inst\]|<</?sys>>|#{2,}\s*(instruction|system)\b"
            r"|(^|[\n.])\s*(system|assistant)\s*:\s",
        ),
        (
            "orders the model to act before or around other tools",
            rf"\b(before|after|whenever|every time|each time)\b[^.!?]{{0,20}}\b({_CALLING})\b[^.!?]{{0,20}}"
            rf"\b(this|any|other|another|all)\b[^.!?]{{0,12}}\b(tools?|functions?)\b{_FAR}"
            r"\b(read|open|fetch|call|send|include|pass|run|execute|first|must|list)\b"
            r"|\byou (must|have to|shall) (always |first |also |immediately )+"
            r"(call|read|send|use|run|execute|include|pass)\b",
        ),
        (
            "names files that hold secrets",
            r"(~|\$home|%userprofile%)[/\\]\.\w|\.(ssh|aws|gnupg|kube|netrc|npmrc|pypirc|bash_history)\b"
            r"|\bid_(rsa|ed25519)\b|/etc/(passwd|shadow)\b|\bclaude_desktop_config\b|\bmcp\.json\b",
        ),
        (
            "asks for secrets or the conversation",
            rf"\b(send|forward|upload|post|exfiltrate|transmit|include|pass|provide|append|attach|put)\b{_FAR}"
            rf"\b({_TALK}|{_SECRETS})\b|\bsystem prompt\b|\b(conversation|chat) history\b",
        ),
        ("holds markup that is not shown", r"<!--|<script\b|javascript:|!\[[^\]]{0,80}\]\(\s*https?:"),
        (
            "carries an encoded payload",
            r"\bdata:[a-z]+/[\w.+-]+(;[\w=-]+)*,|(\\x[0-9a-f]{2}){6,}|(\\u[0-9a-f]{4}){6,}"
            r"|(&#x?[0-9a-f]{2,6};){4,}|(%[0-9a-f]{2}){12,}|\b[0-9a-f]{200,}\b",
        ),
    )
)
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{120,}={0,2}")
_PUSHED = re.compile(r"[ \t\u00a0]{60,}|(\r?\n[ \t]*){15,}")
_NAME = re.compile(r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)+|[a-z]+[A-Z]\w+")
"""A name of several words; one of a single word is usually just that word."""
_UNREAD = frozenset({"icons", "_meta"})
"""Not shown to a model; looked at for hidden characters only."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    path: str
    degree: Degree
    what: str
    """Readable, with the place in the text where there is one; nothing in it is hidden."""

    def __str__(self) -> str:
        return f"{self.path or 'text'} {self.what}"


def suspicions(text_or_descriptor: Any, others: Collection[str] = ()) -> list[Suspicion]:
    """What in a text, or anywhere in a descriptor, does not belong there. `others`: names of other tools."""
    found: list[Suspicion] = []
    names = frozenset(others)
    for path, text in _texts(text_or_descriptor):
        read = not path or path[0] not in _UNREAD
        look = _remembered if len(text) <= _REMEMBERED_LENGTH else _of_text
        found.extend(Suspicion(pointer(path), degree, what) for degree, what in look(text, names, read))
        if len(found) >= _MAX:
            break
    return found[:_MAX]


def _texts(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, Mapping):
            stack.extend(((*path, str(key)), member) for key, member in reversed(list(item.items())))
            yield from ((path, str(key)) for key in item if not str(key).isascii())
        elif isinstance(item, list | tuple):
            stack.extend(((*path, index), member) for index, member in reversed(list(enumerate(item))))


def _of_text(text: str, others: frozenset[str], read: bool) -> list[tuple[Degree, str]]:
    found: list[tuple[Degree, str]] = [("hidden", what) for what in _unseen(text)]
    if not read:
        return found
    seen = latin(unicodedata.normalize("NFKC", "".join(c for c in text if not any(hidden(c)))))
    found += [("instruction", what) for what in _orders(text, seen)]
    names = sorted(others & {*_NAME.findall(seen)})
    return found + [("note", f"speaks of the tool '{name}' of another upstream") for name in names]


_remembered = lru_cache(maxsize=4096)(_of_text)


def _orders(text: str, seen: str) -> Iterator[str]:
    flat = re.sub(r"[ \t\r\n]+", " ", seen)
    for what, pattern in _ORDERS:
        if match := pattern.search(flat):
            yield f"{what}: '{_excerpt(match[0])}'"
    if blob := next((b for b in _BLOB.findall(seen) if _encoded(b)), None):
        yield f"carries an encoded payload: '{_excerpt(blob)}'"
    if _PUSHED.search(text):
        yield "pushes text out of sight with blanks"
    for word in deceptive(text)[:1]:
        yield f"writes a word in letters that only look so: '{_excerpt(word)}'"


def _unseen(text: str) -> Iterator[str]:
    spots = list(hidden(text))
    if not spots:
        return
    codes = ", ".join(dict.fromkeys(f"U+{ord(c):04X}" for _, c in spots[:20]))
    if "\x1b" in text or "\x9b" in text:
        yield f"holds terminal escapes ({codes})"
    elif controls(text):
        yield f"holds control characters ({codes})"
    elif bidi(text):
        yield f"holds characters that turn the direction of text ({codes})"
    else:
        yield f"holds {len(spots)} characters that nobody sees ({codes})"


def _encoded(blob: str) -> bool:
    """Long words, paths and rulers are not payloads; those mix cases and digits throughout."""
    kinds = (str.isupper, str.islower, str.isdigit)
    return (
        all(sum(map(kind, blob)) >= len(blob) // 20 for kind in kinds) and blob.count("/") < len(blob) // 10
    )


def _excerpt(text: str) -> str:
    shown = visible(" ".join(text.split()))
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
