"""Which of these versions does the caller mean?

A spec is an exact version (`2.1.0`), `LATEST`, a wildcard (`2.x`, `2.1.x`), or a range as npm reads it
(`^2.0.0`, `~2.1`, `>=1.2 <2`, `1.x || 3.x`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import nodesemver
import semver

Bump = Literal["major", "minor", "patch", "none", "down"]

LATEST = "LATEST"
MAX_SPEC = 128
"""Nobody writes a longer one, and the range parser backtracks."""

_NEVER_CHOSEN = frozenset({"sunset", "revoked"})
_ALLOWED = "use an exact version ('2.1.0'), 'LATEST', '2.x', '^2.0.0', '~2.1' or a range ('>=1.2 <2')"


@dataclass(frozen=True, slots=True)
class Candidate:
    version: str
    status: str = "active"


@dataclass(frozen=True, slots=True)
class Spec:
    text: str
    kind: Literal["exact", "latest", "range"]
    _range: Any = None

    @staticmethod
    def parse(text: str | None) -> "Spec":
        """Raises ValueError that says what is allowed."""
        return _parse_spec(LATEST if text is None else text)

    def admits(self, version: str) -> bool:
        if self.kind == "exact":
            return version == self.text
        return self.kind == "latest" or bool(self._range.test(version))


def parse_version(text: str) -> semver.Version:
    """Raises ValueError when it is not a semantic version."""
    try:
        return semver.Version.parse(text)
    except (ValueError, TypeError):
        raise ValueError(f"'{text}' is not a semantic version; write it as '1.2.3'") from None


def choose(spec: str | None, candidates: Iterable[Candidate]) -> str | None:
    """The version a spec means, or None. An exact one is chosen whatever its status."""
    wanted = Spec.parse(spec)
    offered = [c for c in candidates if wanted.admits(c.version)]
    if wanted.kind == "exact":
        return offered[0].version if offered else None
    best = max((c for c in offered if c.status not in _NEVER_CHOSEN), key=_preference, default=None)
    return None if best is None else best.version


def newest(versions: Iterable[str]) -> str | None:
    return max(versions, key=parse_version, default=None)


def bump(old: str, new: str) -> Bump:
    """How far it is from one version to the next; build metadata does not count."""
    before, after = parse_version(old), parse_version(new)
    if after < before:
        return "down"
    if after == before:
        return "none"
    if after.major != before.major:
        return "major"
    if after.minor != before.minor:
        return "minor"
    return "patch"


def _preference(candidate: Candidate) -> tuple[bool, bool, semver.Version]:
    """Released before pre-release, then supported before deprecated, then newest."""
    version = parse_version(candidate.version)
    return not version.prerelease, candidate.status != "deprecated", version


@lru_cache(maxsize=1024)
def _parse_spec(text: str) -> Spec:
    if text.upper() == LATEST:
        return Spec(LATEST, "latest")
    if semver.Version.is_valid(text):
        return Spec(text, "exact")
    try:
        if not text.strip() or len(text) > MAX_SPEC or not text.isascii():
            raise ValueError
        return Spec(text, "range", nodesemver.make_range(text, False))
    except ValueError:
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise ValueError(f"'{shown}' is not a version spec; {_ALLOWED}") from None
