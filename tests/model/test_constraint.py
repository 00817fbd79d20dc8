"""Does a constraint hold for exactly what its words say?"""

from typing import Any

import pytest

from holdfast.model.constraint import Constraint, domain_of, faults, holds, misfits, told
from holdfast.model.placeholder import read
from tests.requirements import requirement

pytestmark = requirement("APR-8", "APR-9")


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        ({"equals": 1}, [1, 1.0], [True, "1", 2, None, [1]]),
        ({"equals": {"a": [1]}}, [{"a": [1]}], [{"a": [1, 2]}, {}]),
        ({"one_of": ["a", 2]}, ["a", 2, 2.0], ["A", "2", None]),
        ({"at_most": 5}, [5, -3, 4.9], [5.1, "4", True, None]),
        ({"at_least": 5}, [5, 6.5], [4.99, "6", False]),
        ({"at_least": 0, "at_most": 5}, [0, 5], [-1, 6]),
        ({"prefix": "o-"}, ["o-", "o-1"], ["O-1", "xo-", 7]),
        ({"longest": 3}, ["", "abc", [1, 2, 3]], ["abcd", [1, 2, 3, 4], 3]),
        ({"each": {"at_most": 2}}, [[], [1, 2]], [[1, 3], 1, "12"]),
        ({"any": True}, [None, 1, {"x": 2}], []),
        (
            {"domain": "Example.com"},
            ["a@example.com", "A.b+c@EXAMPLE.COM", "https://example.com/x?y", "http://example.com:8080"],
            [
                "a@example.com.evil.org",
                "a@evil.org, b@example.com",
                "b@evil.org@example.com",
                "<a@example.com>",
                "a@example.com\nBcc: x@evil.org",
                "example.com",
                "a@sub.example.com",
                "https://example.com@evil.org/",
                "https://user@example.com/",
                "https://evil.org/example.com",
                "https://evil.org\\@example.com",
                "javascript://example.com/",
                " a@example.com",
                7,
            ],
        ),
    ],
)
def test_a_constraint_holds_inside_and_nowhere_else(
    constraint: Constraint, inside: list[Any], outside: list[Any]
) -> None:
    assert faults(constraint) is None
    assert told(constraint)
    assert [value for value in inside if not holds(constraint, value)] == []
    assert [value for value in outside if holds(constraint, value)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        "x",
        {"below": 3},
        {"at_most": "3"},
        {"at_most": True},
        {"at_most": float("nan")},
        {"one_of": []},
        {"one_of": "abc"},
        {"domain": ""},
        {"domain": ["a b"]},
        {"prefix": ""},
        {"longest": -1},
        {"any": False},
        {"each": {}},
        {"each": {"each": {"each": {"each": {"each": {"any": True}}}}}},
    ],
)
def test_what_could_not_be_checked_is_no_constraint(wrong: Any) -> None:
    assert faults(wrong) is not None


def test_an_argument_nobody_spoke_of_is_not_covered() -> None:
    said: dict[str, Constraint] = {"to": {"equals": "a"}, "note": {"any": True}}
    assert misfits(said, {"to": "a"}) == []
    assert misfits(said, {"to": "a", "note": "x"}) == []
    assert len(misfits(said, {"to": "a", "bcc": "b"})) == 1
    assert len(misfits(said, {"note": "x"})) == 1


@pytest.mark.parametrize("value", ["a@b", "https://b/", "http://b"])
def test_the_domain_of_an_address_is_what_it_is_delivered_to(value: str) -> None:
    assert domain_of(value) == "b"


def test_a_placeholder_is_judged_by_its_example() -> None:
    found = read({"amount": {"$any": {"at_most": 9}}, "to": {"$any": {"prefix": "x"}, "like": "xy"}, "n": 1})
    assert found.example == {"amount": 9, "to": "xy", "n": 1}
    assert (set(found.open), found.faults) == ({"amount", "to"}, ())


@pytest.mark.parametrize(
    "wrong",
    [
        {"$any": {"prefix": "x"}},
        {"$any": {"prefix": "x"}, "like": "y"},
        {"$any": {"nothing": 1}, "like": 1},
        {"$any": {"any": True}, "like": 1, "more": 2},
        [{"$any": {"any": True}, "like": 1}],
        {"deep": {"$any": {"any": True}, "like": 1}},
    ],
)
def test_a_placeholder_that_says_too_little_is_refused(wrong: Any) -> None:
    assert len(read({"to": wrong}).faults) == 1
