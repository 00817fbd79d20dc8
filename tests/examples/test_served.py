"""Do the commands that `make run` prints do what they say, as printed?"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from tests.docs.pages import ROOT
from tests.docs.shell import PATIENCE_S, Session, environment
from tests.requirements import requirement

DONE, HELD = 0, 4


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """What `make run` starts, in a fresh copy of what it serves."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("*.db*", "__pycache__")
    )
    opened = Session(folder)
    try:
        opened.run("$ make run\ntry, in another terminal ... shop.refund ... --config")
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def printed(session: Session) -> list[str]:
    lines = re.findall(r"^  (\S*holdfast call .+)$", session.said, re.MULTILINE)
    return [line.replace(line.split()[0], "holdfast", 1) for line in lines]


def run(session: Session, command: str) -> tuple[int, str]:
    done = subprocess.run(
        shlex.split(command),
        cwd=session.folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout


@requirement("PPL-3")
def test_make_run_answers_health(session: Session) -> None:
    with urlopen(f"http://127.0.0.1:{session.ports['8080']}/health") as answer:
        assert answer.status == 200


def test_three_commands_are_printed(printed: list[str]) -> None:
    assert [command.split()[2] for command in printed] == ["shop.get_order", "shop.add_note", "shop.refund"]


@requirement("PPL-3")
def test_the_first_reads(session: Session, printed: list[str]) -> None:
    code, out = run(session, printed[0])
    assert (code, "Mira Sand" in out) == (DONE, True)


@requirement("PPL-3")
def test_the_second_writes_once_however_often_it_is_run(session: Session, printed: list[str]) -> None:
    first, again = run(session, printed[1]), run(session, printed[1])
    assert (first[0], again[0]) == (DONE, DONE)
    assert "replayed" not in first[1]
    assert "replayed" in again[1]
    assert '"note_id": 1' in again[1]


@requirement("PPL-3")
def test_the_third_is_held_for_two_people(session: Session, printed: list[str]) -> None:
    code, out = run(session, printed[2])
    assert (code, "waiting for 2 x operator" in out) == (HELD, True)
