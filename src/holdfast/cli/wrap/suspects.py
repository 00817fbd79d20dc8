"""Which part of a text looks like a secret?

Taking too much for one costs a line in an environment, taking too little copies a credential into another
file. So whatever is named like a secret is one, and whatever looks random is one too.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int, str]
"""From, to, and a word for what it is."""

_WORDS = {
    "auth", "authorization", "bearer", "cookie", "cookies", "cred", "creds", "credential", "credentials",
    "dsn", "jwt", "otp", "pass", "pat", "pin", "private", "pwd", "salt", "session", "sig", "signature",
    "webhook",
}  # fmt: skip
_ENDS = ("key", "keys", "token", "tokens", "secret", "secrets", "password", "passwd", "passphrase", "apikey")
_PLACES = {"path", "file", "dir", "directory", "folder", "url", "uri", "endpoint", "host", "port", "mode"}
"""A name that ends so says where something is: `SSH_KEY_PATH`. What its value looks like still counts."""

_PREFIXES = (
    r"sk-", r"[prs]k_(?:live|test)_", r"gh[opsur]_", r"github_pat_", r"glpat-", r"xox[abeoprs]-", r"xapp-",
    r"A[KS]IA[A-Z0-9]{10}", r"AIza", r"ya29\.", r"npm_", r"pypi-", r"hf_", r"shp(?:at|ca|pa)_", r"SG\.",
    r"lin_api_", r"ntn_", r"secret_", r"tvly-", r"fc-", r"figd_", r"dop_v1_", r"sntrys?_", r"gsk_", r"r8_",
    r"pat[A-Za-z0-9]{14}\.", r"ph[cx]_", r"key-", r"eyJ[A-Za-z0-9_-]{8,}\.",
)  # fmt: skip
_KNOWN = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_PREFIXES)})[A-Za-z0-9_./+=-]{{6,}}")
_SAID = re.compile(
    r"(?i)\b(?:bearer|basic)\s+[^\s$]{4,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?:password|passwd|pwd|secret|token|api[_-]?key|account_?key|access_?key)\s*[=:]\s*[^\s$;,]"
)
_PASSWORD = re.compile(r"[A-Za-z][\w+.-]*://[^/?#@\s:]*:[^/?#@\s]+@")
_PUBLIC = re.compile(r"(?:sha\d{3}:|@)[0-9a-f]{40,128}(?![0-9a-zA-Z])")
_UUID = re.compile(r"(?i)(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])")
_RUN = re.compile(r"[A-Za-z0-9_+=~-]{20,}")
RESTLESS = 0.2
"""Changes between small letters, capitals and digits per character: few in words, many in random text."""

_NAMED = re.compile(r"^(?P<name>--?[A-Za-z][\w.-]*|[A-Za-z_]\w*)=(?P<value>.+)$", re.DOTALL)
_HEADER = re.compile(r"^(?P<name>[A-Za-z][\w-]*):(?!//)\s*(?P<value>.+)$", re.DOTALL)
_FLAG = re.compile(r"^--?(?P<name>[A-Za-z][\w.-]*)$")
_QUERY = re.compile(r"[?&](?P<name>[^=&#]+)=(?P<value>[^&#]+)")
_SEGMENT = re.compile(r"(?<=/)[^/?#]+")


def named_secret(name: str) -> bool:
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    if not words or words[-1] in _PLACES:
        return False
    return any(word in _WORDS or word.endswith(_ENDS) for word in words)


def looks_secret(text: str) -> bool:
    plain = _PUBLIC.sub(" ", text)
    if any(pattern.search(plain) for pattern in (_KNOWN, _SAID, _PASSWORD, _UUID)):
        return True
    return any(_random(found[0]) for found in _RUN.finditer(plain))


def in_value(name: str, text: str) -> list[Span]:
    """A variable or a header: all of it or nothing."""
    return [(0, len(text), name)] if text and (named_secret(name) or looks_secret(text)) else []


def in_argument(text: str, before: str) -> list[Span]:
    """An argument after another one: `--token=x`, `--token x`, `NAME=x`, `Header: x`, or a value alone."""
    for form in (_NAMED, _HEADER):
        if found := form.match(text):
            name, start = found["name"].lstrip("-"), found.start("value")
            secret = named_secret(name) or looks_secret(found["value"])
            return [(start, len(text), name)] if secret else []
    flag = _FLAG.match(before)
    if flag and named_secret(flag["name"]) and not text.startswith("-"):
        return [(0, len(text), flag["name"])]
    what = flag["name"] if flag else "url" if "://" in text else ""
    return [(0, len(text), what)] if looks_secret(text) else []


def in_url(text: str) -> list[Span]:
    """Query and path; the host stays readable."""
    return sorted({span[:2]: span for span in _url_spans(text)}.values())


def _url_spans(text: str) -> Iterator[Span]:
    begin = text.find("://") + 3
    for found in _QUERY.finditer(text):
        if named_secret(found["name"]) or looks_secret(found["value"]):
            yield (*found.span("value"), found["name"])
    end = min((at for mark in "?#" if (at := text.find(mark)) >= 0), default=len(text))
    for found in _SEGMENT.finditer(text, text.find("/", begin) if "/" in text[begin:] else end, end):
        if looks_secret(found[0]):
            yield (*found.span(), "path")


def _random(run: str) -> bool:
    kinds = ["0" if c.isdigit() else "A" if c.isupper() else "a" for c in run if c.isalnum()]
    if len(kinds) < 20 or "0" not in kinds or len(set(kinds)) < 2:
        return False
    return sum(a != b for a, b in pairwise(kinds)) / len(kinds) >= RESTLESS
