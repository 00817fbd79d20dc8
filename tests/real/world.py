"""What do the servers work on, and what have they made of it?"""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.conformance.fixture.content import pixel
from tests.real.servers import COMMITS

PAGE = b"<html><head><title>T</title></head><body><h1>Hello</h1><p>One <b>bold</b> word.</p></body></html>"


def build(folder: Path) -> None:
    """The same every time, whatever was there before."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "files" / "sub").mkdir(parents=True)
    (folder / "files" / "notes.txt").write_text("first\nsecond\nthird\n")
    (folder / "files" / "sub" / "deep.txt").write_text("deep\n")
    (folder / "files" / "pixel.png").write_bytes(pixel())
    (folder / "repo").mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "repo" / "a.txt").write_text("one\ntwo\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    (folder / "repo" / "a.txt").write_text("one\n2\n")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder / "repo"), "-c", "core.hooksPath=/dev/null", *arguments]
    variables = {**os.environ, **COMMITS, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30, env=variables)
    return done.stdout


def look(folder: Path) -> dict[str, str | bytes]:
    """Every file and every commit: what the servers have done to the world."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.parts]
    commits = git(folder, "log", "--all", "--format=%H %D %s")
    found: dict[str, str | bytes] = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return found | {"commits": commits, "status": git(folder, "status", "--porcelain")}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path == "/page.html"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE if known else b"")

    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody wants to read it."""


@contextmanager
def pages() -> Iterator[str]:
    """A web site of one page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()
