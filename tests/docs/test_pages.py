"""Is everything the docs show true today?"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.docs.pages import GENERATED, ROOT, RUN, SHOWN, Block, Page, executed, pages
from tests.docs.shell import PATIENCE_S, Session, environment, made
from tests.requirements import requirement

PAGES = pages()
EXECUTED = executed()


def name_of(page: Page) -> str:
    return page.name


@requirement("PPL-3", "NAM-6")
@pytest.mark.parametrize("page", EXECUTED, ids=name_of)
def test_a_page_does_what_it_says(page: Page, tmp_path: Path) -> None:
    if "$ curl" in page.text and shutil.which("curl") is None:
        pytest.skip("this page uses curl, which is not here")
    if page.start is not None:
        target = tmp_path / page.start.relative_to(ROOT)
        shutil.copytree(page.start, target, ignore=shutil.ignore_patterns("*.db*", "__pycache__"))
    session = Session(tmp_path)
    try:
        for block in page.blocks:
            if block.file is not None:
                (tmp_path / block.file).write_text(block.body)
            elif block.language == "console":
                session.run(block.body)
            elif block.language == "python":
                execute(block, tmp_path)
            elif block.language == "json":
                json.loads(block.body)
    finally:
        session.close()


def execute(block: Block, folder: Path) -> None:
    """Runs a block as a program of its own, so that no page sees what another one imported."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=block.body,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, f"the block at line {block.line} ends with\n{ran.stderr}"


@pytest.mark.parametrize("page", EXECUTED, ids=name_of)
def test_every_block_is_run_or_says_that_it_is_only_shown(page: Page) -> None:
    unknown = [
        block.line
        for block in page.blocks
        if not (block.language in RUN or block.language == SHOWN or block.file is not None)
    ]
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Page) -> None:
    inside = [link for link in page.links if not re.match(r"https?:|mailto:|#", link)]
    missing = [link for link in inside if not (page.path.parent / link.partition("#")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_anchor_is_a_heading_of_its_page(page: Page) -> None:
    for link in page.links:
        file, mark, anchor = link.partition("#")
        if mark and not file.startswith("http"):
            target = page.path if not file else page.path.parent / file
            assert anchor in anchors(target.read_text()), link


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked, todo = set(), [index]
    while todo:
        path = todo.pop()
        if path in linked or path.suffix != ".md" or not path.is_file():
            continue
        linked.add(path)
        todo += [(path.parent / link.partition("#")[0]).resolve() for link in Page(path).links]
    assert sorted({page.name for page in PAGES} - {Page(path).name for path in linked}) == []


@requirement("NAM-6")
def test_every_name_the_pages_import_from_the_package_is_public() -> None:
    code = "\n".join(block.body for page in PAGES for block in page.blocks if block.language == "python")
    named = {
        name
        for line in re.findall(r"^from holdfast import (.+)$", code, re.MULTILINE)
        for name in line.split(", ")
    }
    assert {"Effect", "Gateway", "Principal", "Undo", "tool"} <= named <= set(holdfast.__all__)


@requirement("PPL-3")
def test_make_run_serves_the_demo() -> None:
    assert made("make run") == "holdfast serve --config examples/demo/holdfast.yaml"


def test_every_make_target_the_pages_name_exists() -> None:
    named = {target for page in PAGES for target in re.findall(r"\bmake ([a-z]+)\b", code_of(page))}
    known = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert named <= set(known)


def code_of(page: Page) -> str:
    inline = re.findall(r"`([^`\n]+)`", page.text)
    return "\n".join([*inline, *(block.body for block in page.blocks)])


@requirement("PPL-3")
def test_the_readme_starts_with_make_run_and_make_test() -> None:
    first = Page(ROOT / "README.md").blocks[0].body
    assert re.findall(r"^\$ (make \w+)", first, re.MULTILINE) == ["make run", "make test"]


@requirement("PPL-3")
def test_the_generated_pages_are_what_the_code_says() -> None:
    from tests.docs.generate import PAGES as generators

    assert set(generators) == GENERATED
    stale = [name for name, make in generators.items() if (ROOT / name).read_text() != make()]
    assert stale == [], "run: .venv/bin/python -m tests.docs.generate"


def test_a_wrong_output_would_be_seen(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.run("$ echo call_00ff 3 ms\ncall_1a 7 ms\n$ echo call_1a\ncall_1a")
    with pytest.raises(AssertionError, match="it answered"):
        session.run("$ echo two\none")
    with pytest.raises(AssertionError, match="it answered"):
        session.run("$ echo call_00fe\ncall_1a")


def test_what_the_demo_writes_is_not_kept_in_the_tree() -> None:
    ignored = subprocess.run(
        [
            "git",
            "check-ignore",
            "examples/demo/demo.db",
            "examples/demo/shop.db",
            "examples/demo/demo.db-workers",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ignored.returncode == 128:
        pytest.skip("not a git checkout")
    assert len(ignored.stdout.split()) == 3
