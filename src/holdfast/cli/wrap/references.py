"""How do secrets and a client's own variables become references?

Holdfast's configuration says `${NAME}`; the value stays where it is, or moves inside the client's own file.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.cli.wrap.clients import Client, Setup
from holdfast.cli.wrap.suspects import Span

_OURS = re.compile(r"\$(?=\{[A-Za-z_][A-Za-z0-9_]*\})")
_SCHEME = re.compile(r"(?i)\s*(?:bearer|basic|token|apikey)?\s*")
"""All that may stand beside what a client fills in without being a secret itself."""
_RESERVED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_.*|PWD|TMPDIR|TEMP|TMP|APPDATA|SYSTEMROOT|COMSPEC"
    r"|HOLDFAST_.*|PYTHON.*|LD_.*|DYLD_.*|NODE_OPTIONS"
)
"""What the gateway's own process lives by: a server's variable of that name is passed on under another."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable that the configuration refers to."""

    name: str
    text: str = field(repr=False)
    """What the client's file says: the value itself, or what the client fills in."""
    where: str
    """Where that is."""
    value: str | None = field(repr=False)
    """The value, where it can be known now."""
    secret: bool
    """The text holds the secret itself, so it is never shown."""
    file: str | None = None
    """The environment file that has it, as the client's entry names it."""


class References:
    """All variables of one set-up; two servers share one only where it says the same."""

    def __init__(self, setup: Setup, environ: Mapping[str, str]) -> None:
        self.client: Client = setup.client
        self._folder = setup.folder
        self._environ = environ
        self.given: dict[str, Reference] = {}

    def translate(self, text: str, spans: list[Span], namespace: str, where: str) -> str:
        """The text as Holdfast's configuration writes it."""
        cuts = self._cut(text, spans)
        if any(text[:start].endswith("$") for start, *_ in cuts):  # "$${NAME}" would be text again
            cuts = [(0, len(text), cuts[0][2], False)]
        parts, at = [], 0
        for start, end, hint, filled in cuts:
            name = self._name(text[start:end], hint, namespace, where, filled)
            parts += [escaped(text[at:start]), f"${{{name}}}"]
            at = end
        return "".join([*parts, escaped(text[at:])])

    def resolve(self, text: str) -> str | None:
        """What the client would make of it; None where only the client knows."""
        if self.client.variables is None:
            return text
        values = [self._filled_in(found) for found in self.client.variables.finditer(text)]
        if None in values:
            return None
        known = iter(values)
        return self.client.variables.sub(lambda _: next(known) or "", text)

    def made(self, value: str, namespace: str, where: str) -> str:
        """A header made from a user and a password that stood in an address."""
        return self.translate(value, [(0, len(value), "authorization")], namespace, f"{where}, as a header")

    def from_file(self, name: str, value: str, namespace: str, file: str) -> str:
        """A variable out of the environment file that an entry names."""
        return self._given(name, namespace, Reference("", value, file, value, secret=True, file=file))

    def _cut(self, text: str, spans: list[Span]) -> list[tuple[int, int, str, bool]]:
        own = [] if self.client.variables is None else list(self.client.variables.finditer(text))
        kept = [span for span in spans if not self._only_filled(text[span[0] : span[1]])]
        cuts = [(start, end, hint, False) for start, end, hint in kept]
        cuts += [
            (*found.span(), found["name"], True)
            for found in own
            if not any(start < found.end() and found.start() < end for start, end, _ in kept)
        ]
        return sorted(cuts)

    def _only_filled(self, piece: str) -> bool:
        """Whether what is secret in it is filled in by the client: `Bearer ${input:token}`."""
        variables = self.client.variables
        if variables is None or not variables.search(piece):
            return False
        if any(found.groupdict().get("default") for found in variables.finditer(piece)):
            return False
        return _SCHEME.fullmatch(variables.sub("", piece)) is not None

    def _name(self, piece: str, hint: str, namespace: str, where: str, filled: bool) -> str:
        value = self.resolve(piece)
        if filled:
            told = f"{self.client.name} fills in {piece}"
            return self._given(_upper(hint), namespace, Reference("", piece, told, value, secret=False))
        wanted = hint if hint.isupper() else f"{namespace}_{hint or 'argument'}"
        return self._given(_upper(wanted), namespace, Reference("", piece, where, value, secret=True))

    def _given(self, wanted: str, namespace: str, reference: Reference) -> str:
        name, number = (f"{_upper(namespace)}_{wanted}" if _RESERVED.fullmatch(wanted) else wanted), 1
        said = (reference.text, reference.value, reference.file)
        while (known := self.given.get(name)) and (known.text, known.value, known.file) != said:
            number += 1
            name = f"{_upper(namespace)}_{wanted}" + (f"_{number}" if number > 2 else "")
        if known is None:
            self.given[name] = replace(reference, name=name)
        return name

    def _filled_in(self, found: re.Match[str]) -> str | None:
        parts = found.groupdict()
        name, kind = parts["name"], parts.get("kind")
        if "default" in parts or kind == "env":
            return self._environ.get(name, parts.get("default"))
        match kind, name:
            case None, "workspaceFolder":
                return None if self._folder is None else str(self._folder)
            case None, "workspaceFolderBasename":
                return None if self._folder is None else self._folder.name
            case None, "userHome":
                return str(Path.home())
            case None, "pathSeparator" | "/":
                return os.sep
        return self._environ.get(_upper(name))


def escaped(text: str) -> str:
    """Text that means itself, where `${NAME}` would mean a variable."""
    return _OURS.sub("$$", text)


def _upper(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    plain = re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_").upper()
    return f"_{plain}" if plain[:1].isdigit() else plain or "VALUE"
