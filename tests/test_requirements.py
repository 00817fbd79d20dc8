"""Does every clause have its proof, and does every proof name a clause?

The sources are read instead of the collected tests, so the answer is the same whether one file runs or all.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.requirements import CLAUSES, REQUIREMENTS, Requirement, requirement

TESTS = Path(__file__).parent
SPEC = TESTS.parent.parent / "shared" / "SPEC.md"


@dataclass(frozen=True, slots=True)
class Claim:
    """One id in one `requirement(...)`."""

    id: str
    place: str
    is_proof: bool  # it marks a test, not a helper


def claims_in(source: str, name: str) -> Iterator[Claim]:
    tree = ast.parse(source)
    helpers = {id(mark) for node in ast.walk(tree) for mark in _decorators_of_helper(node)}
    for node in ast.walk(tree):
        if not _is_requirement(node):
            continue
        for argument in node.args:
            place = f"{name}:{argument.lineno}"
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise ValueError(
                    f"{place}: write requirement ids as plain strings, so that they can be found"
                )
            yield Claim(argument.value, place, is_proof=id(node) not in helpers)


def _is_requirement(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "requirement"


def _decorators_of_helper(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    is_test = node.name.startswith("Test" if isinstance(node, ast.ClassDef) else "test_")
    return [] if is_test else node.decorator_list


def faults(clauses: Mapping[str, Requirement], claims: list[Claim]) -> list[str]:
    """Everything that keeps clauses and tests from agreeing."""
    proven = {claim.id for claim in claims if claim.is_proof}
    found = [f"{claim.place}: '{claim.id}' is not a clause" for claim in claims if claim.id not in clauses]
    found += [f"{claim.place}: '{claim.id}' marks no test" for claim in claims if not claim.is_proof]
    for clause in clauses.values():
        if clause.deferred is None and clause.id not in proven:
            found.append(f"'{clause.id}' has no test: write one, or say deferred=\"why\"")
        if clause.deferred is not None and clause.id in proven:
            found.append(f"'{clause.id}' has a test: remove deferred=, and say partial= for what is missing")
    return found


def test_clauses_and_tests_agree_both_ways() -> None:
    files = sorted(TESTS.rglob("*.py"))
    claims = [
        claim
        for path in files
        if path != Path(__file__)
        for claim in claims_in(path.read_text(), str(path.relative_to(TESTS.parent)))
    ]
    assert not (wrong := faults(REQUIREMENTS, claims)), "\n".join(wrong)


def test_a_clause_says_what_it_means_and_why_it_waits() -> None:
    for clause in REQUIREMENTS.values():
        assert re.fullmatch(r"[A-Z]{3}-[1-9]\d*", clause.id)
        assert clause.text.strip(), clause.id
        assert clause.deferred is None or clause.deferred.strip(), clause.id
        assert clause.partial is None or clause.partial.strip(), clause.id


def test_no_clause_is_listed_twice() -> None:
    assert len(REQUIREMENTS) == len(CLAUSES)


@pytest.mark.skipif(not SPEC.exists(), reason="the specification is not beside this checkout")
def test_the_list_is_that_of_the_specification() -> None:
    specified = set(re.findall(r"\b(?!UTF-)[A-Z]{3}-\d+\b", SPEC.read_text()))
    assert set(REQUIREMENTS) == specified


def test_an_unknown_id_fails_where_it_is_written_and_names_the_nearest() -> None:
    with pytest.raises(LookupError, match=r"unknown requirement 'IDM-44', did you mean 'IDM-4'"):
        requirement("IDM-44")


SAMPLE = {
    "ABC-1": Requirement("ABC-1", "one"),
    "ABC-2": Requirement("ABC-2", "two", deferred="not yet"),
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('@requirement("ABC-1")\ndef test_one(): ...', []),
        ('pytestmark = requirement("ABC-1")', []),
        ('@requirement("ABC-1")\nclass TestOne: ...', []),
        ('TestLaw = requirement("ABC-1")(Law.TestCase)', []),
        ("def test_one(): ...", ["'ABC-1' has no test"]),
        ('@requirement("ABC-1", "ABC-2")\nasync def test_both(): ...', ["'ABC-2' has a test"]),
        (
            '@requirement("ABC-1")\ndef helper(): ...',
            ["x.py:1: 'ABC-1' marks no test", "'ABC-1' has no test"],
        ),
        ('@requirement("ABC-1", "ABC-9")\ndef test_one(): ...', ["x.py:1: 'ABC-9' is not a clause"]),
    ],
)
def test_what_does_not_agree_is_named(source: str, expected: list[str]) -> None:
    found = faults(SAMPLE, list(claims_in(source, "x.py")))
    assert len(found) == len(expected)
    for said, start in zip(found, expected, strict=True):
        assert said.startswith(start)


def test_an_id_that_cannot_be_read_from_the_source_is_refused() -> None:
    with pytest.raises(ValueError, match=r"x\.py:1: write requirement ids as plain strings"):
        list(claims_in("@requirement(*IDS)\ndef test_one(): ...", "x.py"))
