"""What does the operator state about an upstream's tools?

One file per upstream. `tools` is keyed by the upstream's own name, our name, or a pattern; each entry has the
flat keywords of `@tool`. Defaults come first, then patterns in the order of the file, then the exact name.
A pattern says nothing of a tool that turned up later and was not accepted, so that nothing is inherited by
taking a fitting name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from holdfast.catalog.document import from_mapping, json_value, yaml_value
from holdfast.catalog.imports.contract import EXTRA
from holdfast.catalog.imports.names import local_name
from holdfast.model.declaration import PLACES, Declaration, blank, fill
from holdfast.model.errors import AdmissionError, ConfigError
from holdfast.model.explain import nearest
from holdfast.model.vocabulary import Effect, Floor, ToolStatus

VERSION = 1

KEYWORDS = sorted(
    (Declaration.__annotations__.keys() - {"name", "checks"})
    | EXTRA
    | {"effect", "input_schema", "output_schema"}
)
_OWN = ("effect", "undo", "version", "status", "description", "input_schema", "output_schema", *EXTRA)
"""Said of one tool (or of a pattern), never of whatever comes along."""
_FLAT = {f"{section}.{name}": word for word, (section, name) in PLACES.items()}


@dataclass(frozen=True, slots=True)
class Stated:
    """What the overlay says of one tool."""

    values: Mapping[str, Any] = field(default_factory=dict)
    passed_over: tuple[str, ...] = ()
    """Patterns that would fit but do not count for a tool that came later."""

    @property
    def classified(self) -> bool:
        return "effect" in self.values


@dataclass(frozen=True, slots=True)
class Overlay:
    defaults: Mapping[str, Any] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = "overlay"

    @classmethod
    def load(cls, path: str | Path) -> "Overlay":
        """From a file; `.json` is JSON, anything else YAML. Raises ConfigError with every fault."""
        file = Path(path)
        try:
            text = file.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read the overlay '{file.name}': {error.strerror}") from None
        try:
            read = json_value if file.suffix == ".json" else yaml_value
            tree = read(text, file.name)
        except AdmissionError as error:
            raise ConfigError(f"overlay '{file.name}': {error.reasons[0]}") from None
        return cls.parse({} if tree is None else tree, file.name)

    @classmethod
    def parse(cls, mapping: Any, source: str = "overlay") -> "Overlay":
        """Raises ConfigError with every fault at once, each with its place."""
        faults = list(_faults(mapping))
        if faults:
            raise ConfigError("\n  ".join([f"overlay '{source}' cannot be used", *faults]))
        return cls(mapping.get("defaults") or {}, mapping.get("tools") or {}, source)

    def stated(self, native: str, *, late: bool = False) -> Stated:
        """What is said of a tool; `late`: it came after its upstream was first seen, and nobody accepted."""
        names = {native, local_name(native)}
        exact = [entry for key, entry in self.tools.items() if key in names]
        matching = [
            key for key in self.tools if _is_pattern(key) and key not in names and fnmatchcase(native, key)
        ]
        values = dict(self.defaults)
        for entry in (*([] if late else map(self.tools.__getitem__, matching)), *exact):
            values |= entry
        return Stated(values, tuple(matching) if late else ())

    def unused(self, natives: list[str]) -> list[str]:
        """Names the overlay speaks of and the upstream does not offer."""
        known = {name for native in natives for name in (native, local_name(native))}
        return [
            f"'{self.source}' speaks of '{key}', which the upstream does not offer{_hint(key, natives)}"
            for key in self.tools
            if key not in known and not (_is_pattern(key) and any(fnmatchcase(n, key) for n in natives))
        ]


def _hint(key: str, natives: list[str]) -> str:
    close = get_close_matches(key, natives, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def _is_pattern(key: str) -> bool:
    return bool(re.search(r"[*?\[]", key))


def _faults(mapping: Any) -> Iterator[str]:
    if not isinstance(mapping, Mapping):
        yield "it must be a mapping with 'version' and 'tools'"
        return
    for key in mapping:
        if key not in ("version", "defaults", "tools"):
            yield f"'{key}' is not known here; {nearest(str(key), ['version', 'defaults', 'tools'])}"
    if mapping.get("version") != VERSION or isinstance(mapping.get("version"), bool):
        yield f"'version' must be {VERSION}, the version of this form"
    defaults, tools = mapping.get("defaults") or {}, mapping.get("tools") or {}
    if isinstance(defaults, Mapping):
        yield from _entry("defaults", defaults, {})
        yield from (
            f"'defaults.{word}' is said of each tool, not of all" for word in _OWN if word in defaults
        )
    else:
        yield "'defaults' must be a mapping of keywords"
        defaults = {}
    if not isinstance(tools, Mapping):
        yield "'tools' must be a mapping from names to keywords"
        return
    for name, entry in tools.items():
        if not isinstance(name, str):
            yield f"'tools.{name}' is no name; write it in quotes"
        elif not isinstance(entry, Mapping):
            yield f"'tools.{name}' must be a mapping of keywords"
        else:
            yield from _entry(f"tools.{name}", entry, defaults)


def _entry(place: str, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    unknown = [word for word in entry if word not in KEYWORDS]
    yield from (f"'{place}.{word}' is not known; {nearest(str(word), KEYWORDS)}" for word in unknown)
    for word in sorted(EXTRA & entry.keys()):
        if not isinstance(entry[word], bool):
            yield f"'{place}.{word}' must be true or false"
    known = {word: value for word, value in entry.items() if word not in unknown and word not in EXTRA}
    yield from _values(place, known)
    yield from _unclassified(place, {**defaults, **known})


def _values(place: str, known: Mapping[str, Any]) -> Iterator[str]:
    """What a contract would refuse of these values, by the keywords that were written."""
    document = blank()
    document["identity"] |= {"namespace": "overlay", "name": "tool", "version": "1.0.0"}
    document["affordance"] |= {"description": "", "input_schema": {}}
    document["transactional"]["effect"] = Effect.READ_ONLY.value
    try:
        fill(document, known, "overlay")
        from_mapping(document)
    except AdmissionError as error:
        for reason in error.reasons:
            yield f"'{place}' {_flat(reason)}"
    except (TypeError, ValueError):
        yield f"'{place}' holds a value that cannot be read"


def _flat(reason: str) -> str:
    """The reason with the keyword of the overlay instead of the path in the contract."""
    for path in sorted(_FLAT, key=len, reverse=True):
        if reason.startswith((f"'{path}'", f"'{path}.")):
            return reason.replace(path, _FLAT[path], 1)
    return reason


def _unclassified(place: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Without an effect nobody has classified the tool, and nothing makes it seem safer. CON-8."""
    if "effect" in entry:
        if entry.get("status") == ToolStatus.PROVISIONAL.value:
            yield f"'{place}.status' cannot be 'provisional': a stated effect is the operator's word"
        return
    for word in ("undo", "status"):
        if word in entry:
            yield f"'{place}.{word}' needs 'effect': say first what the tool does"
    floor = entry.get("floor")
    if floor in list(Floor) and not Floor(floor).at_least(Floor.OPERATOR):
        yield f"'{place}.floor' below 'operator' needs 'effect': say first what the tool does"
