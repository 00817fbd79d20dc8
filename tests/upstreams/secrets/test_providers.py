"""Is a secret read from where it is kept, and told by nothing that goes wrong?"""

import asyncio
import base64
import errno
import json
import os
import select
import sys
import types
from pathlib import Path

import pytest

from holdfast.model.errors import SecretError
from holdfast.upstreams.secrets.command import CommandSecret
from holdfast.upstreams.secrets.env import EnvSecret
from holdfast.upstreams.secrets.file import FileSecret
from holdfast.upstreams.secrets.keyring import KeyringSecret
from tests.requirements import requirement

CANARY = "kanarienvogel-7391"


def program(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", "-c", code)


@requirement("AUT-3")
async def test_a_variable_is_looked_at_with_each_use() -> None:
    environ = {"TOKEN": CANARY}
    provider = EnvSecret("TOKEN", environ)
    assert (await provider.read()).text == CANARY
    environ["TOKEN"] = "another-one"
    assert (await provider.read()).text == "another-one"
    del environ["TOKEN"]
    with pytest.raises(SecretError, match="'TOKEN' is not set"):
        await provider.read()


@pytest.mark.parametrize("text", ["", "\n", "abc\n", "with\0zero", "x" * 70_000])
async def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(SecretError) as told:
        await EnvSecret("TOKEN", {"TOKEN": text}).read()
    assert not told.value.passing
    assert "zero" not in str(told.value) or "zero byte" in str(told.value)


def test_printing_a_secret_shows_nothing_of_it() -> None:
    from holdfast.model.secret import Secret

    assert CANARY not in f"{Secret(CANARY)!r} {Secret(CANARY)}"


@requirement("AUT-8")
async def test_a_file_is_read_again_once_it_was_written_to_or_replaced(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first-secret\n")
    provider = FileSecret(path)
    first = await provider.read()
    assert first.text == "first-secret"
    assert await provider.read() is first  # untouched: not even opened
    path.write_text("second-secret\n")
    assert (await provider.read()).text == "second-secret"
    beside = tmp_path / "token.new"
    beside.write_text("third--secret\n")
    about = path.stat()
    os.utime(beside, ns=(about.st_atime_ns, about.st_mtime_ns))  # as a mount does: only the inode tells
    beside.replace(path)
    assert (await provider.read()).text == "third--secret"


async def test_a_file_that_is_away_or_no_text_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="'token' cannot be read: no such file"):
        await FileSecret(tmp_path / "token").read()
    (tmp_path / "token").write_bytes(b"\xff\xfe" + CANARY.encode())
    with pytest.raises(SecretError, match="not UTF-8") as told:
        await FileSecret(tmp_path / "token").read()
    assert CANARY not in str(told.value)


@requirement("EXE-10")
async def test_a_program_gets_its_words_without_a_shell(tmp_path: Path) -> None:
    words = ("$(touch made)", "; touch made", "`touch made`", CANARY)
    argv = (*program("import sys; print(sys.argv[-1])"), *words)
    assert (await CommandSecret(argv, tmp_path).read()).text == CANARY
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (f"import sys; print('{CANARY}'); print('{CANARY}', file=sys.stderr); sys.exit(3)", "status 3"),
        ("import sys; sys.stdout.write('x' * 300_000)", "more than"),
        (f"import os; os.write(1, b'\\xff{CANARY}')", "not UTF-8"),
        ("pass", "fewer than 4"),
    ],
)
async def test_a_program_that_fails_is_told_without_what_it_printed(code: str, says: str) -> None:
    with pytest.raises(SecretError, match=says) as told:
        await CommandSecret(program(code)).read()
    assert CANARY not in str(told.value)


async def test_a_program_that_does_not_end_is_ended_with_all_it_started(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    wait = f"open({str(pipe)!r}).read()"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {wait!r}]); {wait}"
    with pytest.raises(SecretError, match=r"within 0\.3 s") as told:
        await CommandSecret(program(code), deadline_s=0.3).read()
    assert told.value.passing
    assert await asyncio.to_thread(left_by_all, pipe)


def left_by_all(pipe: Path) -> bool:
    """Whether nobody is at the other end any more; who was killed ends in its own time."""
    try:
        end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        return error.errno == errno.ENXIO
    try:
        waiting = select.poll()
        waiting.register(end, 0)  # tells of nothing but that
        return waiting.poll(10_000) == [(end, select.POLLERR)]
    finally:
        os.close(end)


async def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(SecretError, match="'no-such-program' cannot be started: no such file"):
        await CommandSecret(("no-such-program",)).read()


def ring(monkeypatch: pytest.MonkeyPatch, get: object) -> None:
    """A module of that name, as the package would be; the package itself is optional."""
    module = types.ModuleType("keyring")
    module.__dict__["get_password"] = get
    monkeypatch.setitem(sys.modules, "keyring", module)


async def test_the_keyring_is_asked_by_service_and_user(monkeypatch: pytest.MonkeyPatch) -> None:
    ring(monkeypatch, lambda service, user: CANARY if (service, user) == ("crm", "bot") else None)
    assert (await KeyringSecret("crm", "bot").read()).text == CANARY
    with pytest.raises(SecretError, match="'keyring set crm nobody'"):
        await KeyringSecret("crm", "nobody").read()


async def test_a_machine_without_a_keyring_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoKeyringError(Exception):
        pass

    def get(service: str, user: str) -> str:
        raise NoKeyringError(CANARY)

    ring(monkeypatch, get)
    with pytest.raises(SecretError, match="has none; use another provider") as told:
        await KeyringSecret("crm", "bot").read()
    assert CANARY not in str(told.value)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(SecretError, match="'pip install keyring'"):
        await KeyringSecret("crm", "bot").read()


@requirement("AUT-8")
async def test_a_token_that_says_when_it_ends_is_believed() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1_800_000_600}).encode()).rstrip(b"=").decode()
    token = f"eyJhbGciOiJub25lIn0.{claims}.c2ln"
    assert (await EnvSecret("T", {"T": token}).read()).expires_at == 1_800_000_600
    for odd in ("eyJ.eyJ.x", f"eyJh.{base64.urlsafe_b64encode(b'[1]').decode()}.x", "a.b.c-d"):
        assert (await EnvSecret("T", {"T": odd}).read()).expires_at is None
