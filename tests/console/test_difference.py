"""Is a change between two readings told field by field, and nothing made up?"""

from typing import Any

import pytest

from holdfast.servers.console.difference import LONGEST, MOST_FIELDS, difference, fields
from tests.requirements import requirement


def rows(before: Any, after: Any, *, same_source: bool = True) -> list[tuple[str, str | None, str | None]]:
    found = difference(before, after, same_source=same_source)
    return [(field.name, field.before, field.after) for field in found.changed]


@requirement("APR-1", "PPL-2")
@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, [("b", "2", "3")]),
        ({"a": 1}, {"a": 1, "b": None}, [("b", None, "null")]),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 2}]}}, [("a.b[0].c", "1", "2")]),
        ({"s": ["x", "z"]}, {"s": ["x", "y", "z"]}, [("s: y", None, "y")]),
        ({"a": True}, {}, [("a", "true", None)]),
        ({"a": 1.5}, {"a": 1.5}, []),
        ("old", "new", [("value", "old", "new")]),
    ],
)
def test_fields_that_differ_are_named(before: Any, after: Any, told: list[Any]) -> None:
    assert rows(before, after) == told


@requirement("APR-1")
def test_of_two_tools_only_what_both_tell_is_compared() -> None:
    before = {"order": "o-1", "paid": 49, "email": "m@example.com"}
    after = {"order": "o-1", "paid": 40, "left_before_cents": 4900, "left_after_cents": 3400}
    assert rows(before, after, same_source=False) == [("left_cents", "4900", "3400"), ("paid", "49", "40")]
    assert difference(before, after, same_source=False).same[0].name == "order"


def test_a_text_of_several_lines_is_compared_by_line() -> None:
    [field] = difference({"t": "a\nb\nc"}, {"t": "a\nB\nc"}, same_source=True).changed
    assert [(line.mark, line.text) for line in field.lines] == [
        (" ", "a"),
        ("-", "b"),
        ("+", "B"),
        (" ", "c"),
    ]


def test_what_is_large_is_cut_and_counted() -> None:
    many = {str(n): n for n in range(MOST_FIELDS + 7)}
    found = difference(many, many, same_source=True)
    assert (len(found.same), found.left_out) == (MOST_FIELDS, 7)
    shown, left_out = fields({"a": "x" * (LONGEST + 3), "\u202eb": 1})
    assert shown == (("a", "x" * LONGEST + "… (3 more characters)"), ("⟦U+202E⟧b", "1"))
    assert left_out == 0


@requirement("APR-1")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"body": "a" * 500 + "x"}, {"body": "a" * 500 + "y"}),
        ({"body": "a\n" * 400 + "x"}, {"body": "a\n" * 400 + "y"}),
        ({"a": {"b": 1}, "a.b": 2}, {"a": {"b": 9}, "a.b": 2}),
        ({"k" * 80 + "1": 1, "k" * 80 + "2": 5}, {"k" * 80 + "1": 9, "k" * 80 + "2": 5}),
        ({"l": [1]}, {"l": [1, 1]}),
        ({"x": True}, {"x": 1}),
        ({"x": "1"}, {"x": 1}),
        ([[[[[[[[1]]]]]]]], [[[[[[[[2]]]]]]]]),
    ],
)
def test_nothing_that_differs_passes_for_the_same(before: Any, after: Any) -> None:
    [(_, was, is_now)] = rows(before, after)
    assert was != is_now


@requirement("APR-1")
def test_what_changed_is_shown_before_what_did_not() -> None:
    many = {str(n): n for n in range(MOST_FIELDS + 7)}
    found = difference(many | {"role": "user"}, many | {"role": "admin"}, same_source=True)
    assert [field.name for field in found.changed] == ["role"]
    assert (len(found.same), found.left_out) == (MOST_FIELDS - 1, 8)


@requirement("APR-1")
def test_a_line_that_looks_like_the_head_of_a_patch_is_a_line() -> None:
    [field] = difference({"t": "a\n-- old\nc"}, {"t": "a\n++ new\nc"}, same_source=True).changed
    told = [(line.mark, line.text) for line in field.lines]
    assert told == [(" ", "a"), ("-", "-- old"), ("+", "++ new"), (" ", "c")]


@requirement("APR-1")
def test_a_change_far_down_is_not_hidden_behind_one_on_top() -> None:
    between = "".join(f"{number}\n" for number in range(400))
    old, new = f"x\n{between}x", f"y\n{between}y"
    [field] = difference({"t": old}, {"t": new}, same_source=True).changed
    assert "not compared" in field.lines[-1].text


@requirement("APR-1")
def test_every_argument_has_a_row_of_its_own() -> None:
    shown, left_out = fields({"a": {"b": 1}, "a.b": 2, "l": ["x", "x"]})
    assert shown == (("a.b", "1"), ("a.b (2)", "2"), ("l: x", "x"), ("l: x (2)", "x"))
    assert left_out == 0
