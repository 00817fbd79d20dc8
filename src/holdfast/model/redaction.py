"""What may not be shown, and how is it taken out of a text?

Values of fields marked with `x-sensitivity` are known to the call that carries them; what looks like a
credential is not shown whoever wrote it. Nothing here is on the path of a call that goes well.
"""

import json
import re
import traceback
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from holdfast.model.schema import Validator
from holdfast.model.strict_json import ParseError, parse

MOST = 32_768
"""Characters of one text that are kept: what is longer is no message, and looking through it is not free."""
SHORT = 6
"""A marked value shorter than this is only taken out where it stands as a word: `7` is in every line."""

Marked = tuple[str, str]
"""A value that may not be shown, as text, and its label."""
CREDENTIAL = "credential"
"""The label of what the gateway itself added to a call."""

_CREDENTIALS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bhf_([a-z0-9]{4,32})_[A-Za-z0-9_-]{8,}"), r"hf_\1_[credential]"),
    (
        re.compile(
            r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|x-holdfast-approver-secret)"
            r"(['\"]?\s*[:=,]\s*b?['\"]?)[^\r\n'\"]+"
        ),
        r"\1\2[credential]",
    ),
    (re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/-]{6,}=*"), r"\1\2[credential]"),
    (
        re.compile(
            r"(?i)(password|passwd|pwd|secret|api[_-]?key|(?:access|refresh|id|auth)[_-]?token|private[_-]?key)"
            r"(['\"]?\s*[:=]\s*)(?:\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s'\"&,;})\]]+)"
        ),
        r"\1\2[credential]",
    ),
    (re.compile(r"\b([a-z][a-z0-9+.-]{0,20}://[^\s/:@'\"]{0,100}):[^\s/@'\"]{1,200}@"), r"\1:[credential]@"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), "[credential]"),
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
        ),
        "[credential]",
    ),
)


def scrubbed(text: str) -> str:
    """The text without what looks like a credential."""
    if len(text) > MOST:
        text = text[:MOST] + " [cut]"
    for pattern, instead in _CREDENTIALS:
        text = pattern.sub(instead, text)
    return text


def withheld(text: str, values: Iterable[Marked]) -> str:
    """The text without these values, in whatever usual spelling they appear."""
    for value, label in sorted(values, key=lambda marked: -len(marked[0])):
        for spelling in spellings(value):
            if len(value) >= SHORT:
                text = text.replace(spelling, f"[{label}]")
            else:
                text = re.sub(rf"(?<!\w){re.escape(spelling)}(?!\w)", f"[{label}]", text)
    return text


def explained(error: BaseException, values: Iterable[Marked] = ()) -> str:
    """An error with its traceback, for the operator's log."""
    return scrubbed(withheld("".join(traceback.format_exception(error)).rstrip(), values))


def marked_in(schema: Validator, value: Any) -> Iterator[Marked]:
    """Every value below a marked field, as text."""
    if schema.sensitivity.empty:
        return
    if isinstance(value, str | bytes):  # arguments may come as JSON text
        try:
            value = parse(value)
        except ParseError:
            return
    yield from differences(value, schema.sensitivity.redact(value))


def differences(value: Any, redacted: Any) -> Iterator[Marked]:
    """Everything that is in a value and not in what is shown of it, as text."""
    if isinstance(value, dict) and isinstance(redacted, dict):
        for name in value:
            yield from differences(value[name], redacted[name])
    elif isinstance(value, list | tuple) and isinstance(redacted, list):
        for one, other in zip(value, redacted, strict=True):
            yield from differences(one, other)
    elif isinstance(redacted, str) and value != redacted:
        for leaf in _leaves(value):
            yield leaf, redacted.strip("[]")


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(name)
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        if value:
            yield value
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def spellings(value: str) -> Iterator[str]:
    """As it is, and as Python, JSON, URLs and base64 write it."""
    yield from dict.fromkeys(
        spelling
        for spelling in (
            value,
            repr(value)[1:-1],
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            quote(value, errors="replace"),
            quote(value, safe="", errors="replace"),
            quote_plus(value, errors="replace"),
            b64encode(value.encode(errors="replace")).decode().rstrip("="),
        )
        if spelling
    )
