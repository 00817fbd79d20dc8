"""Where does the browser of the tests come from?

One on the PATH, or that CHROMIUM names; else Debian's package, where it may be installed; else the one
that Playwright downloads. Without any the tests fail and say what to do: a console nobody has opened in a
browser is not tested. It is looked for once in a run of the tests, whatever the number of workers.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.npm.installed import PEERS

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
INSTALLING_S = 600
ASKING_S = 60
PACKAGE = (
    ("apt-get", "update"),
    ("apt-get", "install", "-y", "--no-install-recommends", "chromium"),
)
DOWNLOAD = (sys.executable, "-m", "playwright", "install", "chromium")
DOWNLOADED = (
    sys.executable,
    "-c",
    "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)",
)
WHAT_TO_DO = (
    "the tests of the console need a Chromium, and none could be had; do one of these and run them again:\n"
    "  - install one: apt-get install chromium (as root), or your system's package of Chromium or Chrome\n"
    "  - let Playwright download its own: .venv/bin/python -m playwright install chromium\n"
    "  - name the one you have: CHROMIUM=path/to/chromium make test"
)


class Ran(NamedTuple):
    code: int
    said: str


Run = Callable[[Sequence[str], float], Ran]


class NoBrowser(RuntimeError):
    pass


@dataclass(frozen=True, slots=True)
class Machine:
    """What is asked of this machine."""

    environment: Mapping[str, str]
    is_root: bool
    run: Run


@cache
def chromium() -> Path:
    """Its executable."""
    PEERS.mkdir(exist_ok=True)
    with (PEERS / "chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker looks, the others learn what it found
        return found_once(PEERS / "chromium", _this_run(), Machine(os.environ, os.geteuid() == 0, _run))


def found_once(kept: Path, run: str, machine: Machine) -> Path:
    """What was found, or why nothing was, is kept for the rest of this run."""
    before, _, said = kept.read_text().partition("\n") if kept.exists() else ("", "", "")
    if before != run:
        try:
            said = str(find(machine))
        except NoBrowser as error:
            said = f"none: {error}"
        kept.write_text(f"{run}\n{said}")
    if said.startswith("none: "):
        raise NoBrowser(said.removeprefix("none: "))
    return Path(said)


def find(machine: Machine) -> Path:
    """The first that starts; whatever went wrong on the way is told with what to do."""
    tried: list[str] = []
    if (named := machine.environment.get("CHROMIUM")) is not None:
        if _starts(machine, named):
            return Path(named)
        raise NoBrowser(f"CHROMIUM names {named!r}, which does not start; name one that does, or unset it")
    for path in (_on_path, _from_debian, _from_playwright):
        found = path(machine, tried)
        if found is not None:
            return Path(found)
    raise NoBrowser("\n".join([WHAT_TO_DO, "what was tried:", *(f"  - {said}" for said in tried)]))


def _on_path(machine: Machine, tried: list[str]) -> str | None:
    found = list(_named(machine))
    for one in found:
        if _starts(machine, one):  # Ubuntu's `chromium-browser` only says where to get it
            return one
        tried.append(f"{one} is on the PATH and does not start")
    if not found:
        tried.append(f"on the PATH: none of {', '.join(NAMES)}")
    return None


def _from_debian(machine: Machine, tried: list[str]) -> str | None:
    if not _which(machine, "apt-get"):
        tried.append("Debian's package: there is no apt-get here")
    elif not machine.is_root:
        tried.append("Debian's package: only root may install it")
    else:
        for command in PACKAGE:
            ran = machine.run(command, INSTALLING_S)
            if ran.code:
                tried.append(f"Debian's package: {' '.join(command)!r} failed: {_last(ran)}")
                return None
        found = next((one for one in _named(machine) if _starts(machine, one)), None)
        if found is None:
            tried.append("Debian's package: it was installed, and nothing on the PATH starts")
        return found
    return None


def _from_playwright(machine: Machine, tried: list[str]) -> str | None:
    for command in (DOWNLOAD, DOWNLOADED):
        ran = machine.run(command, INSTALLING_S)
        if ran.code:
            tried.append(f"Playwright's own: {_last(ran)}")
            return None
    found = ran.said.strip()
    if _starts(machine, found):
        return found
    tried.append(f"Playwright's own: {found!r} was downloaded and does not start; it may lack libraries")
    return None


def _named(machine: Machine) -> Iterator[str]:
    yield from filter(None, (_which(machine, name) for name in NAMES))


def _which(machine: Machine, name: str) -> str | None:
    return shutil.which(name, path=machine.environment.get("PATH", os.defpath))


def _starts(machine: Machine, path: str) -> bool:
    return machine.run((path, "--version"), ASKING_S).code == 0


def _last(ran: Ran) -> str:
    lines = [line.strip() for line in ran.said.splitlines() if line.strip()]
    return lines[-1] if lines else f"it ended with {ran.code}"


def _run(command: Sequence[str], within_s: float) -> Ran:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Ran(1, str(error))
    return Ran(done.returncode, done.stdout if done.returncode == 0 else done.stderr or done.stdout)


def _this_run() -> str:
    """Every worker of one run says the same."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()}-{os.urandom(8).hex()}"
