"""What did wrapping find and do? Nothing here holds a secret, so all of it may be shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.cli.wrap.files import Fate
from holdfast.cli.wrap.upstreams import Plan


@dataclass(frozen=True, slots=True)
class Guess:
    """A tool, what it is taken to do, and why."""

    tool: str
    effect: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What one server said when it was asked."""

    guesses: tuple[Guess, ...] = ()
    faults: tuple[str, ...] = ()
    """Why it could not be listed, or what is wrong with what it lists."""
    tools: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    """The descriptors as they came."""
    reached: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the configuration must say beside what the client's file said."""


@dataclass(frozen=True, slots=True)
class Result:
    file: Path
    plan: Plan
    config: Path
    listed: Mapping[str, Listed]
    """By namespace; empty when no server was asked."""
    fates: Mapping[Path, Fate]
    name: str
    entry: Mapping[str, Any]
    """As it may be printed."""
    notes: tuple[str, ...] = ()
    """What was odd about what was listed."""
    to_add: str = ""
    """What is missing in a configuration that was kept."""
    applied: bool = False
    backup: Path | None = None

    @property
    def pasted(self) -> dict[str, Any]:
        """The entry at its place, as the client's file has it."""
        whole: dict[str, Any] = {self.name: dict(self.entry)}
        for key in reversed(self.plan.setup.path):
            whole = {key: whole}
        return whole

    def json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "file": str(self.file),
            "client": plan.setup.client.name,
            "place": plan.setup.place,
            "config": str(self.config),
            "servers": {one.server.name: self._server(one.namespace) for one in plan.wrapped},
            "left": dict(plan.left),
            "notes": [*plan.notes, *self.notes],
            "variables": [
                {"name": name, "where": reference.where, "secret": reference.secret}
                for name, reference in plan.references.given.items()
            ],
            "files": {str(path): fate.value for path, fate in self.fates.items()},
            "to_add": self.to_add,
            "paste": self.pasted,
            "applied": self.applied,
            "backup": None if self.backup is None else str(self.backup),
        }

    def _server(self, namespace: str) -> dict[str, Any]:
        listed = self.listed.get(namespace)
        if listed is None:
            return {"namespace": namespace, "asked": False}
        return {
            "namespace": namespace,
            "asked": True,
            "reached": listed.reached,
            "faults": list(listed.faults),
            "tools": [{"tool": g.tool, "effect": g.effect, "reason": g.reason} for g in listed.guesses],
        }
