"""Which descriptors of which upstreams were accepted, by whom, and what waits to be?

The lock is a file for people and version control: stable, sorted, every hidden character escaped. Values are
immutable; `save` writes what this process changed and leaves what others wrote meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.catalog.imports import lockfile
from holdfast.catalog.imports.names import local_name
from holdfast.holding import HELD_S
from holdfast.model.errors import ConfigError, NotFound

KEPT = 5
"""Earlier versions kept beside the current one, so that an old key still finds its contract."""
FIRST_USE = "first use"
COSMETIC = "cosmetic change"


@dataclass(frozen=True, slots=True)
class Accepted:
    """One version of a tool: the descriptor, and what was stated of it when its contract was made."""

    version: str
    digest: str
    """Of what in the descriptor is a promise; see `descriptor.digest`."""
    contract: str
    """Digest of the contract made from it; approvals and claims bind to that."""
    descriptor: Mapping[str, Any]
    accepted_by: str
    accepted_at: str
    stated: Mapping[str, Any] = field(default_factory=dict)
    trusted: bool = False
    """Whether annotations were believed."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A descriptor that waits for an operator."""

    digest: str
    descriptor: Mapping[str, Any]
    reason: str
    diff: str
    seen_at: str
    accepted_by: str | None = None
    """Set by `accept`; it becomes a version when the upstream offers exactly this again."""
    accepted_at: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool of one upstream, by its own name."""

    first_seen: str
    versions: tuple[Accepted, ...] = ()
    """Oldest first; the last is current."""
    pending: Pending | None = None
    late: bool = False
    """It turned up after its upstream was first seen, and nobody has accepted it by name."""

    @property
    def current(self) -> Accepted | None:
        return self.versions[-1] if self.versions else None

    def with_version(self, accepted: Accepted) -> "Entry":
        return replace(self, versions=(*self.versions, accepted)[-KEPT - 1 :], pending=None)

    def with_current(self, accepted: Accepted) -> "Entry":
        return replace(self, versions=(*self.versions[:-1], accepted), pending=None)


Tools = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Lock:
    upstreams: Mapping[str, Tools] = field(default_factory=dict)
    base: Mapping[str, Tools] = field(default_factory=dict, compare=False, repr=False)
    """What the file said when it was read."""

    @classmethod
    def load(cls, path: str | Path) -> "Lock":
        """An empty lock where there is no file; raises ConfigError for one that cannot be read."""
        upstreams = lockfile.read(Path(path), _entry)
        return cls(upstreams, upstreams)

    def save(self, path: str | Path, *, patience_s: float = HELD_S) -> "Lock":
        """Write what changed since it was read, over what others wrote meanwhile; what the file says now."""
        file = Path(path)
        try:
            with lockfile.held(file, patience_s):
                there = lockfile.read(file, _entry)
                merged = merge(self.base, self.upstreams, there)
                if merged != there or not file.exists():
                    lockfile.write(file, {name: _tree(tools) for name, tools in merged.items()})
        except OSError as error:
            raise ConfigError(f"cannot write the lock file '{file.name}': {error.strerror}") from None
        return Lock(merged, merged)

    @property
    def changed(self) -> bool:
        return self.upstreams != self.base

    def tools(self, namespace: str) -> Tools:
        return self.upstreams.get(namespace, {})

    def find(self, namespace: str, tool: str) -> tuple[str, Entry] | None:
        """A tool by the upstream's name or ours."""
        tools = self.tools(namespace)
        if tool in tools:
            return tool, tools[tool]
        return next(((native, one) for native, one in tools.items() if local_name(native) == tool), None)

    def having(self, namespace: str, entries: Tools) -> "Lock":
        """With these entries put in or replaced."""
        if not entries:
            return self
        return replace(self, upstreams={**self.upstreams, namespace: {**self.tools(namespace), **entries}})


def accept(lock: Lock, namespace: str, tool: str, by: str, now: str, *, digest: str | None = None) -> Lock:
    """The lock with the waiting descriptor of a tool accepted; raises NotFound where nothing waits.

    `digest` names what the operator was shown: when something else waits by now, nothing is accepted.
    """
    found = lock.find(namespace, tool)
    if found is None:
        raise NotFound(f"the lock knows no tool '{tool}' of '{namespace}'; `holdfast tools` lists them")
    native, entry = found
    if entry.pending is None:
        if not entry.late:
            raise NotFound(f"nothing of '{namespace}.{tool}' waits to be accepted")
        return lock.having(namespace, {native: replace(entry, late=False)})
    if digest is not None and digest != entry.pending.digest:
        raise NotFound(f"'{namespace}.{tool}' changed again since it was shown; look at it once more")
    accepted = replace(entry.pending, accepted_by=by, accepted_at=now)
    return lock.having(namespace, {native: replace(entry, pending=accepted, late=False)})


def merge(
    base: Mapping[str, Tools], ours: Mapping[str, Tools], theirs: Mapping[str, Tools]
) -> dict[str, dict[str, Entry]]:
    """Three-way, tool by tool. Where both sides changed one, what is in the file wins, and ours may wait."""
    merged: dict[str, dict[str, Entry]] = {}
    for namespace in {**theirs, **ours}:
        mine, other, old = (side.get(namespace, {}) for side in (ours, theirs, base))
        for native in {**other, **mine}:
            entry = _merged(old.get(native), mine.get(native), other.get(native))
            if entry is not None:
                merged.setdefault(namespace, {})[native] = entry
    return merged


def _merged(old: Entry | None, mine: Entry | None, other: Entry | None) -> Entry | None:
    if mine in (old, other):
        return other
    if other == old:
        return mine
    if mine is None or other is None:
        return mine or other
    if other.pending is None and mine.pending is not None and mine.pending.digest != _current_digest(other):
        return replace(other, pending=mine.pending)
    return other


def _current_digest(entry: Entry) -> str | None:
    return None if entry.current is None else entry.current.digest


def _entry(tree: Mapping[str, Any]) -> Entry:
    pending = tree.get("pending")
    return Entry(
        first_seen=tree["first_seen"],
        versions=tuple(Accepted(**each) for each in tree.get("versions", ())),
        pending=None if pending is None else Pending(**{**pending, "diff": "\n".join(pending["diff"])}),
        late=tree.get("late", False),
    )


def _tree(tools: Tools) -> dict[str, Any]:
    return {native: _entry_tree(entry) for native, entry in tools.items()}


def _entry_tree(entry: Entry) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "first_seen": entry.first_seen,
        "versions": [_fields(version) for version in entry.versions],
    }
    if entry.pending is not None:
        tree["pending"] = {**_fields(entry.pending), "diff": entry.pending.diff.split("\n")}
    if entry.late:
        tree["late"] = True
    return tree


def _fields(part: Accepted | Pending) -> dict[str, Any]:
    values = {name: getattr(part, name) for name in part.__slots__}
    return {name: value for name, value in values.items() if value is not None}
