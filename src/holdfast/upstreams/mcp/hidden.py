"""What of a target may never be shown, and how is it taken out of a text?

The values of configured variables and headers, and of a URL's query: a server that repeats one in an error or
on its standard error must not put it into our log.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from holdfast.model.purge import Purge
from holdfast.model.redaction import scrubbed
from holdfast.upstreams.mcp.target import HttpTarget, StdioTarget, Target

SHORTEST = 4
"""A value shorter than this is no secret, and is found in every other line."""
MOST_SECRETS = 64
"""Secrets of one upstream that are looked for: those of its callers, and of some rotations."""
LONGEST = 2000
"""Characters of a server's own words that are kept."""


class Hidden:
    def __init__(self, values: frozenset[str] = frozenset()) -> None:
        # The longest first, so that a value within another does not leave the rest of it standing.
        self._fixed = values
        self._values = sorted((v for v in values if len(v) >= SHORTEST), key=len, reverse=True)
        self._secrets: dict[str, None] = {}
        """Secrets the server was told while it ran, the last ones last; they leave its answers too."""
        self._purge: Purge | None = None

    def learn(self, secrets: Iterable[str]) -> None:
        known = self._secrets
        for secret in secrets:
            if secret in known or len(secret) < SHORTEST:
                continue
            if len(known) >= MOST_SECRETS:
                del known[next(iter(known))]
            known[secret] = None
            every = {v for v in (*self._fixed, *known) if len(v) >= SHORTEST}
            self._values = sorted(every, key=len, reverse=True)
            self._purge = Purge(known, "hidden")

    def purged(self, data: Any) -> Any:
        """JSON data without the secrets the server was told."""
        return data if self._purge is None else self._purge.data(data)

    def shown_in(self, text: str) -> bool:
        return any(value in text for value in self._values)

    def out_of(self, text: str, most: int = LONGEST) -> str:
        """The text without those values, and no longer than `most`."""
        text = text[: 4 * most]
        if self._purge is not None:
            text = self._purge.text(text)
        for value in self._values:
            text = text.replace(value, "[hidden]")
        text = scrubbed(text)
        return text if len(text) <= most else text[:most] + " [cut]"


def hidden(target: Target) -> Hidden:
    match target:
        case StdioTarget():
            return Hidden(frozenset(target.env.values()))
        case HttpTarget():
            parts = urlsplit(target.url)
            words = {word for value in target.headers.values() for word in (value, value.rpartition(" ")[2])}
            queries = {value for _, value in parse_qsl(parts.query)}
            return Hidden(frozenset(words | queries | {parts.password or "", parts.query}))


def place(target: Target) -> str:
    """How a target is called in messages."""
    if isinstance(target, StdioTarget):
        return target.command
    parts = urlsplit(target.url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
