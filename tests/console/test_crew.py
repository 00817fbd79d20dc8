"""Is somebody signed in whichever worker answers, and after a restart?"""

import http.client
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.cli.crew import CONFIG, Crew, crew
from tests.requirements import requirement

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people = "auth: {people: {ana: {roles: [operator]}}}\n"
    (tmp_path / "holdfast.yaml").write_text(f"{CONFIG}{people}")
    return tmp_path


def ask(server: Crew, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
    """The status, and the cookie that was given, on a connection of its own."""
    connection = http.client.HTTPConnection(server.address, timeout=60)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers.get("set-cookie", "").partition(";")[0]
    finally:
        connection.close()


@requirement("PPL-2")
def test_a_session_is_good_in_every_worker_and_after_a_restart(folder: Path) -> None:
    with crew(workers=2) as server:
        assert f"open http://{server.address}" in server.said
        status, cookie = ask(server, "POST", "/sign-in", urlencode({"person": "ana"}), **FORM)
        assert status == 303
        assert {ask(server, "GET", "/", Cookie=cookie)[0] for _ in range(20)} == {200}
    with crew(workers=2) as server:
        assert ask(server, "GET", "/", Cookie=cookie)[0] == 200
        assert ask(server, "GET", "/")[0] == 303
