"""Do the tests get themselves a browser, and say what to do where they cannot?"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.browser.chromium import (
    DOWNLOAD,
    DOWNLOADED,
    NAMES,
    PACKAGE,
    Machine,
    NoBrowser,
    Ran,
    _run,
    find,
    found_once,
)
from tests.requirements import requirement


class Outside:
    """What installing does on a machine: by itself nothing works."""

    def __init__(self, folder: Path, **works: Path) -> None:
        self.folder, self.works = folder, works
        self.ran: list[Sequence[str]] = []

    def __call__(self, command: Sequence[str], within_s: float) -> Ran:
        if command[-1] == "--version":
            return _run(command, within_s)  # really started
        self.ran.append(command)
        if command in PACKAGE and "debian" in self.works:
            if "install" in command:
                program(self.works["debian"])
            return Ran(0, "")
        if command in (DOWNLOAD, DOWNLOADED) and "playwright" in self.works:
            program(self.works["playwright"])
            return Ran(0, f"{self.works['playwright']}\n")
        return Ran(100, "reading lists\nE: there is no network\n")


def program(path: Path, code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)
    return path


def machine(outside: Outside, *, is_root: bool = True, **environment: str) -> Machine:
    return Machine({"PATH": str(outside.folder), **environment}, is_root, outside)


@requirement("PPL-2")
@pytest.mark.parametrize("name", NAMES)
def test_one_on_the_path_is_taken_and_nothing_is_installed(tmp_path: Path, name: str) -> None:
    outside = Outside(tmp_path)
    here = program(tmp_path / name)
    assert find(machine(outside)) == here
    assert outside.ran == []


def test_the_one_that_is_named_is_taken_before_any_other(tmp_path: Path) -> None:
    program(tmp_path / "chromium")
    mine = program(tmp_path / "mine" / "browser")
    assert find(machine(Outside(tmp_path), CHROMIUM=str(mine))) == mine
    with pytest.raises(NoBrowser, match=r"CHROMIUM names .* does not start; name one that does"):
        find(machine(Outside(tmp_path), CHROMIUM=str(tmp_path / "nothing")))


def test_one_that_does_not_start_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "chromium", code=1)
    good = program(tmp_path / "google-chrome")
    assert find(machine(Outside(tmp_path))) == good


def test_root_gets_debians_package_where_there_is_one(tmp_path: Path) -> None:
    program(tmp_path / "apt-get")
    outside = Outside(tmp_path, debian=tmp_path / "chromium", playwright=tmp_path / "own" / "chrome")
    assert find(machine(outside)) == tmp_path / "chromium"
    assert outside.ran == list(PACKAGE)


@pytest.mark.parametrize("may_install", [True, False])
def test_else_playwright_downloads_its_own(tmp_path: Path, may_install: bool) -> None:
    if may_install:  # and it fails
        program(tmp_path / "apt-get")
    outside = Outside(tmp_path, playwright=tmp_path / "own" / "chrome")
    assert find(machine(outside, is_root=may_install)) == tmp_path / "own" / "chrome"
    assert outside.ran == [*(PACKAGE[:1] if may_install else ()), DOWNLOAD, DOWNLOADED]


@requirement("PPL-2")
def test_with_none_it_is_said_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    program(tmp_path / "apt-get")
    program(tmp_path / "chromium-browser", code=1)
    with pytest.raises(NoBrowser) as told:
        find(machine(Outside(tmp_path)))
    for words in (
        "apt-get install chromium",
        "playwright install chromium",
        "CHROMIUM=path/to/chromium make test",
        "chromium-browser is on the PATH and does not start",
        "Debian's package: 'apt-get update' failed: E: there is no network",
        "Playwright's own: E: there is no network",
    ):
        assert words in str(told.value)
    with pytest.raises(NoBrowser, match="only root may install it"):
        find(machine(Outside(tmp_path), is_root=False))


def test_it_is_looked_for_once_in_a_run_found_or_not(tmp_path: Path) -> None:
    outside, kept = Outside(tmp_path / "bin"), tmp_path / "kept"
    for _ in range(2):
        with pytest.raises(NoBrowser, match="run them again"):
            found_once(kept, "first", machine(outside))
    assert outside.ran == [DOWNLOAD]
    here = program(tmp_path / "bin" / "chromium")
    assert found_once(kept, "second", machine(outside)) == here
    os.remove(here)
    assert found_once(kept, "second", machine(outside)) == here
