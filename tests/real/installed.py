"""How do the servers of PyPI get here?

`requirements.txt` pins them by hash and names no index: uv takes the one it is configured with. They are
installed once, in an environment of their own beside ours.
"""

import fcntl
import hashlib
import subprocess
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PEERS = ROOT / ".peers"
UV = ROOT / ".ci" / "uv"
INSTALLING_S = 300


@cache
def environment() -> Path:
    """The environment that holds what the requirements list; it is filled when it does not."""
    PEERS.mkdir(exist_ok=True)
    home = PEERS / "pypi"
    with (PEERS / "pypi.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs may start at once
        if not _is_there(home):
            _install(home)
    return home


def program(name: str) -> str:
    return str(environment() / "bin" / name)


def _wanted() -> str:
    return hashlib.sha256((HERE / "requirements.txt").read_bytes()).hexdigest()


def _is_there(home: Path) -> bool:
    mark = home / ".installed"
    python = home / "bin" / "python"
    return mark.exists() and mark.read_text() == _wanted() and python.exists()


def _install(home: Path) -> None:
    python = str(home / "bin" / "python")
    _uv("venv", "--clear", str(home))
    _uv("pip", "sync", "--python", python, "--require-hashes", str(HERE / "requirements.txt"))
    (home / ".installed").write_text(_wanted())


def _uv(*arguments: str) -> None:
    try:
        done = subprocess.run(
            [UV, *arguments], capture_output=True, text=True, timeout=INSTALLING_S, cwd=ROOT
        )
        said = "" if done.returncode == 0 else done.stderr[-2000:]
    except subprocess.TimeoutExpired:
        said = f"uv was not done after {INSTALLING_S} s"
    if said:
        raise RuntimeError(
            "cannot fetch the packages of 'tests/real/requirements.txt'; the tests need an index once: "
            f"check the network or set 'UV_INDEX_URL'\n{said}"
        )
