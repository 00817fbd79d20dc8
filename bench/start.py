"""How long until a gateway is there? From the command to `/ready`, and what an import costs."""

import http.client
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.gateways import running_upstream
from bench.peers import holdfast
from bench.running import free_port, running

CACHED = 1_000
TRIES = 3
LOOK_S = 0.01


@dataclass(frozen=True)
class Start:
    what: str
    seconds: float
    wanted: float

    def __str__(self) -> str:
        kept = "kept" if self.seconds < self.wanted else "not kept"
        return f"{self.what:<48}{self.seconds:>8.2f} s   wanted < {self.wanted:g} s: {kept}"

    def to_dict(self) -> dict[str, float | str]:
        return asdict(self)


def starts(*, quick: bool) -> list[Start]:
    tries = 1 if quick else TRIES
    return [
        Start(f"ready with {CACHED:,} cached tools", min(_ready(CACHED, tries)), 2.0),
        Start("import holdfast", min(_imported("import holdfast") for _ in range(5 * tries)), 0.3),
    ]


def _ready(tools: int, tries: int) -> list[float]:
    """The first start learns the tools and writes them to the lock file; the next find them there."""
    with tempfile.TemporaryDirectory(prefix="holdfast-start-") as folder, running_upstream(tools) as (url, _):
        place = Path(folder)
        config = holdfast.configured(place, url)
        return [_until_ready(place, config) for _ in range(tries + 1)][1:]


def _until_ready(place: Path, config: Path) -> float:
    port = free_port()
    command = (*holdfast.SERVE, "--config", str(config), "--port", str(port))
    start = time.perf_counter()
    with running(command, port, place / "log", look_s=LOOK_S):
        while not _says_ready(port):
            time.sleep(LOOK_S)
        return time.perf_counter() - start


def _says_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _imported(statement: str) -> float:
    """In a process of its own, without what Python itself takes."""
    return max(0.0, _ran(statement) - _ran("pass"))


def _ran(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start
