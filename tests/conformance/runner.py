"""What does the official suite say?"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from tests.npm.installed import packages, script

PACKAGE = "@modelcontextprotocol/conformance"
RUNNING_S = 240
Leg = Literal["server", "client"]
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the checks of one scenario found."""

    passed: int
    failures: tuple[str, ...]

    @property
    def is_pass(self) -> bool:
        return self.passed > 0 and not self.failures


@dataclass(frozen=True, slots=True)
class Report:
    outcomes: Mapping[str, Outcome]
    log: str

    def unmet(self, revision: str, leg: Leg) -> dict[str, tuple[str, ...]]:
        """The required scenarios that did not pass, with what was said of each."""
        found = {name: self.outcomes.get(name) for name in required(revision, leg)}
        return {
            name: ("no result",) if outcome is None else outcome.failures or ("no check passed",)
            for name, outcome in found.items()
            if outcome is None or not outcome.is_pass
        }


def told(unmet: Mapping[str, Sequence[str] | str]) -> str:
    """One line for each finding; the suite's own report is a hundred times longer."""
    return "\n".join(f"{name}: {why}" for name, whys in unmet.items() for why in _each(whys))


def _each(whys: Sequence[str] | str) -> Sequence[str]:
    return [whys] if isinstance(whys, str) else whys


def required(revision: str, leg: Leg) -> list[str]:
    """The scenarios a revision of the protocol demands, as the suite itself lists them."""
    page = yaml.safe_load((packages() / PACKAGE / "requirements" / f"{revision}.yaml").read_text())
    names: list[str] = page[leg]
    return names


async def run(leg: Leg, *arguments: str, revision: str, results: Path) -> Report:
    """Every scenario of a revision; the suite's own exit code says less than its checks."""
    command = (*script(PACKAGE, "dist/index.js"), leg, "--requirements", revision, "-o", str(results))
    process = await asyncio.create_subprocess_exec(
        *command, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(RUNNING_S):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Report(read(leg, results), said.decode(errors="replace"))


def read(leg: Leg, results: Path) -> dict[str, Outcome]:
    """A folder per scenario, named after it and the time."""
    found = {}
    for page in sorted(results.rglob("checks.json")):
        name = _STAMP.sub("", page.parent.relative_to(results).as_posix())
        found[name.removeprefix("server-") if leg == "server" else name] = _outcome(page)
    return found


def _outcome(page: Path) -> Outcome:
    checks = json.loads(page.read_text())
    return Outcome(
        passed=sum(check["status"] == "SUCCESS" for check in checks),
        failures=tuple(
            f"{check['id']}: {check.get('errorMessage') or check['description']}"
            for check in checks
            if check["status"] == "FAILURE"
        ),
    )
