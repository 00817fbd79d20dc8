"""Is the house in order: files, docs and habits that no other tool checks?"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import holdfast
from tests.requirements import requirement

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
QUICK_TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if "soak" not in path.parts)
SHARED_ROOTS = {"/", "/home", "/opt", "/srv", "/tmp", "/usr", "/var"}  # too common to give a machine away


def kept_files() -> list[Path]:
    """What is in the tree or about to be: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files are kept is not known")
    return {relative(path): path.read_text(errors="ignore") for path in kept_files()}


def test_no_kept_file_names_a_path_of_somebodys_machine(texts: dict[str, str]) -> None:
    here = {str(ROOT), str(ROOT.parent), str(Path.home())} - SHARED_ROOTS
    own = "|".join(re.escape(path) for path in sorted(here))
    machine = re.compile(rf"(?<![\w.])(?:(?:{own})/|/(?:home|Users|root)/\w)")
    found = [f"{name}: {match[0]}" for name, text in texts.items() for match in machine.finditer(text)]
    assert found == []


def test_the_lock_pins_by_hash_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = [block for block in re.split(r"\n(?=\S)", lock) if block.strip()]
    assert pins
    assert [
        pin for pin in pins if not re.match(r"[\w.-]+(\[[\w,]+\])?==\S+", pin) or "--hash=" not in pin
    ] == []
    assert "://" not in lock
    assert "index" not in re.findall(r"^--(\w+)", lock, re.MULTILINE)


def test_the_readme_comes_to_the_first_command_within_a_hundred_words() -> None:
    opening, fence, _ = (ROOT / "README.md").read_text().partition("```")
    assert fence, "the README shows no code"
    prose = re.sub(r"!?\[[^\]]*\]\([^)]*\)|<[^>]+>|[#*`>|]", " ", opening)
    assert len(prose.split()) < 100


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"


def test_the_version_is_said_once() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.MULTILINE)
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert project
    assert not released or released[0] == project[1]


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_module_says_which_question_it_answers(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def waits(tree: ast.AST) -> Iterator[int]:
    """The lines that sleep for a fixed time; `sleep(0)` only lets others run."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="sleep") | ast.Name(id="sleep"),
                args=[ast.Constant(value=int() | float() as seconds), *_],
            ) if seconds:
                yield node.lineno


def test_no_test_waits_for_a_fixed_time() -> None:
    found = [
        f"{relative(path)}:{line}" for path in QUICK_TESTS for line in waits(ast.parse(path.read_text()))
    ]
    assert found == []


def test_a_fixed_wait_would_be_seen() -> None:
    source = "time.sleep(1)\nawait asyncio.sleep(0)\nawait asyncio.sleep(0.1)\nsleep(delay)\nsleep(2)"
    assert sorted(waits(ast.parse(source))) == [1, 3, 5]


@requirement("NAM-6")
def test_the_public_names_are_complete_and_sorted() -> None:
    public = {
        name
        for name in dir(holdfast)
        if not name.startswith("_") and not isinstance(getattr(holdfast, name), ModuleType)
    }
    assert list(holdfast.__all__) == sorted(holdfast.__all__)
    assert {name for name in holdfast.__all__ if not name.startswith("_")} == public
    assert public >= {"Effect", "Gateway", "Observation", "Principal", "Undo", "tool"}
