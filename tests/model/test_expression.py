"""Do expressions say only what they may, about only what they are given, and in bounded time?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.expression import MAX_NESTING, MAX_SOURCE, Expression, ExpressionError, Template
from tests.requirements import requirement

ARGS = {"args"}


@requirement("VAL-3")
@pytest.mark.parametrize(
    ("source", "args", "holds"),
    [
        ("args.amount > 0", {"amount": 3}, True),
        ("args.amount > 0", {"amount": -3}, False),
        ("args.items.all(i, i.quantity > 0)", {"items": [{"quantity": 1}, {"quantity": 0}]}, False),
        ("args.items.exists(i, i.sku == 'a')", {"items": [{"sku": "a"}]}, True),
        ("!has(args.override)", {}, True),
        ("args.start < args.end", {"start": "2030-01-01", "end": "2030-02-01"}, True),
        ("args.code.matches('^[A-Z]{3}$')", {"code": "EUR"}, True),
    ],
)
def test_a_predicate_tells_true_from_false(source: str, args: dict[str, Any], holds: bool) -> None:
    assert Expression(source, ARGS).holds({"args": args}) is holds


@pytest.mark.parametrize("source", ["args.", "1 +", "args.x = 3", "import os", "", "lambda: 1"])
def test_what_is_no_expression_does_not_compile(source: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(source, ARGS)


@requirement("VAL-3")
@pytest.mark.parametrize("source", ["os.environ", "result.x > 1", "args.items.all(i, j > 0)"])
def test_a_name_that_was_not_offered_is_refused_at_once(source: str) -> None:
    with pytest.raises(ExpressionError, match="uses unknown names"):
        Expression(source, ARGS)


def test_the_names_a_loop_binds_are_known() -> None:
    nested = "args.orders.all(order, order.lines.exists(line, line.price > 0))"
    data = {"orders": [{"lines": [{"price": 1}]}]}
    assert Expression(nested, ARGS).holds({"args": data})


@pytest.mark.parametrize("source", ["args.missing > 1", "args.text > 1", "1 / args.zero > 0"])
def test_an_expression_that_fails_says_so_and_does_not_pass(source: str) -> None:
    with pytest.raises(ExpressionError, match="fails"):
        Expression(source, ARGS).holds({"args": {"text": "a", "zero": 0}})


@given(st.one_of(st.none(), st.integers(-5, 5), st.text(), st.lists(st.integers(0, 3))))
def test_only_true_is_true(value: Any) -> None:
    with pytest.raises(ExpressionError, match="not true or false"):
        Expression("args.value", ARGS).holds({"args": {"value": value}})


def test_long_and_deep_expressions_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(ExpressionError, match="longer"):
        Expression("1" + "+1" * MAX_SOURCE, ARGS)
    with pytest.raises(ExpressionError, match="nested deeper"):
        Expression("(" * (MAX_NESTING + 1) + "1" + ")" * (MAX_NESTING + 1), ARGS)


UNIQUE = "args.items.all(a, args.items.exists_one(b, b == a))"


@requirement("VAL-3")
def test_a_loop_in_a_loop_over_much_data_is_refused_instead_of_waited_for() -> None:
    unique = Expression(UNIQUE, ARGS)
    assert unique.holds({"args": {"items": list(range(50))}})
    with pytest.raises(ExpressionError, match="loops too often"):
        unique.holds({"args": {"items": list(range(5_000))}})


def test_one_loop_after_another_is_not_a_loop_in_a_loop() -> None:
    source = "args.items.all(a, a >= 0) && args.items.exists(b, b == 4999) && args.text != '.all(.all('"
    assert Expression(source, ARGS).holds({"args": {"items": list(range(5_000)), "text": "x"}})


def test_twenty_loops_in_one_another_over_a_pair_are_refused() -> None:
    source = "args.a.all(i, " * 20 + "true" + ")" * 20
    with pytest.raises(ExpressionError, match="loops too often"):
        Expression(source, ARGS).holds({"args": {"a": [1, 2]}})


def test_a_template_fills_only_what_starts_with_an_equals_sign() -> None:
    template = Template(
        {"id": "=args.id", "fixed": "args.id", "deep": [{"n": "=args.n + 1"}], "flag": True}, ARGS
    )
    assert template.fill({"args": {"id": "o-1", "n": 1}}) == {
        "id": "o-1",
        "fixed": "args.id",
        "deep": [{"n": 2}],
        "flag": True,
    }


def test_a_template_over_unknown_names_does_not_compile() -> None:
    with pytest.raises(ExpressionError, match="unknown names"):
        Template({"a": [{"b": "=nobody"}]}, ARGS)


def test_what_does_not_compile_is_told_by_its_place_and_without_the_grammar() -> None:
    with pytest.raises(ExpressionError) as told:
        Expression("order.cents >", {"order"})
    assert str(told.value).endswith("does not compile: at character 14: something is missing at the end")
    with pytest.raises(ExpressionError, match=r"at character 3: extraneous input 'b'$"):
        Expression("a b", {"a", "b"})
