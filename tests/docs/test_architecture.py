"""Is the architecture page about this architecture?"""

import ast
import re
from pathlib import Path

from holdfast.lifecycle import GATES, PHASES
from holdfast.model.errors import Code
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "ARCHITECTURE.md")
LIFE = Page(ROOT / "docs" / "explanation" / "life-of-a-call.md")


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line[:1] == "|"
    ]


def test_every_test_it_names_exists() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", PAGE.text)
    assert len(named) > 20
    assert [f"{file}::{name}" for file, name in named if name not in names_in(file)] == []


def names_in(file: str) -> set[str]:
    path = ROOT / file
    tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_gates_are_listed_in_their_order_with_their_phases() -> None:
    gates = [gate.__name__ for gate in GATES]
    found = [
        (row[1].strip("`"), row[0]) for row in rows(PAGE.text) if len(row) == 4 and row[1].strip("`") in gates
    ]
    assert found == [(gate, PHASES[gate]) for gate in gates]
    told = [row[0].strip("`") for row in rows(LIFE.text) if row[0].strip("`") in gates]
    assert told == gates


def test_every_gate_answers_only_with_codes_that_both_pages_list() -> None:
    for gate in GATES:
        mentioned = codes_in(ROOT / "src" / "holdfast" / "gates" / f"{gate.__name__}.py")
        for page in (PAGE, LIFE):
            row = next(row for row in rows(page.text) if f"`{gate.__name__}`" in row[:2])
            assert mentioned <= set(re.findall(r"[A-Z_]{5,}", row[-1])), (gate.__name__, page.name)


def codes_in(path: Path) -> set[str]:
    """The codes a gate refuses with, and not those it only looks for in another's answer."""
    tree = ast.parse(path.read_text())
    return {
        node.args[0].attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Refusal"
        and node.args
        and isinstance(node.args[0], ast.Attribute)
        and node.args[0].attr in Code.__members__
    }


def test_the_layers_shown_are_the_layers_checked() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    listed = re.search(r"^layers = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    assert listed
    layers = [re.findall(r"(?<![(\w])\w+(?!\))", line) for line in re.findall(r'"(.*)"', listed[1])]
    shown = next(block.body for block in PAGE.blocks if block.body.startswith("cli\n"))
    assert [line.split(" | ") for line in shown.splitlines()] == [layer for layer in layers if layer]
