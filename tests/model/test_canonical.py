import math
import random
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.canonical import NotCanonical, canonical, digest, fingerprint
from tests.requirements import requirement

SAFE = 2**53 - 1
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=25,
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(max_codepoint=127), max_size=8), inner, max_size=5)
    ),
    max_leaves=25,
)


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        members = [(key, shuffled(member, rng)) for key, member in value.items()]
        rng.shuffle(members)
        return dict(members)
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


@requirement("IDM-2")
@given(values, st.randoms(use_true_random=False))
def test_the_canonical_form_does_not_depend_on_the_order_of_keys(value: Any, rng: random.Random) -> None:
    assert canonical(shuffled(value, rng)) == canonical(value)


@requirement("IDM-2")
@given(values | plain)
def test_the_fast_way_and_the_reference_write_the_same_bytes(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@requirement("IDM-2")
@given(
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(1e-7, 1e-3)
    | st.decimals(-(10**9), 10**9, places=4).map(float)
    | st.integers(-SAFE, SAFE).map(lambda whole: whole / 1024)
)
def test_every_double_is_written_as_the_reference_writes_it(number: float) -> None:
    assert canonical([number]) == rfc8785.dumps([number])


@requirement("IDM-2")
@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (1e21, b"1e+21"),
        (1e-7, b"1e-7"),
        (0.000001, b"0.000001"),
        (4.50, b"4.5"),
        (333333333.33333329, b"333333333.3333333"),
        (SAFE, b"9007199254740991"),
        ({"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}, None),
        ('\u20ac$\u000f\nA\'B"\\\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()),
        ({"b": [True, None], "a": {}}, b'{"a":{},"b":[true,null]}'),
    ],
)
def test_values_are_written_as_rfc_8785_says(value: Any, written: bytes | None) -> None:
    if written is None:  # the RFC's own example of sorting by UTF-16
        keys = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
        written = ("{" + ",".join(f"{canonical(k).decode()}:{value[k]}" for k in keys) + "}").encode()
    assert canonical(value) == written


@requirement("IDM-2")
@pytest.mark.parametrize("number", [2**53, -(2**53), 10**30])
def test_an_integer_that_is_not_exact_everywhere_is_refused_with_its_path(number: int) -> None:
    with pytest.raises(NotCanonical, match="send it as a string") as refused:
        canonical({"order": [{"id": number}]})
    assert refused.value.path == "/order/0/id"


@requirement("IDM-2")
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "\ud800", {"\udfff": 1}, {1: 2}, {1, 2}, b"x"]
)
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical([value])


def test_a_value_nested_beyond_reason_is_refused_and_does_not_crash() -> None:
    value: Any = "x"
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotCanonical, match="nested too deeply"):
        canonical(value)


@requirement("IDM-2")
def test_unicode_is_left_alone() -> None:
    assert digest("é") != digest("e\u0301")
    assert canonical("é") == '"é"'.encode()


@requirement("IDM-2")
def test_one_and_one_point_zero_have_one_fingerprint() -> None:
    assert fingerprint("c", {"n": 1}) == fingerprint("c", {"n": 1.0})


@requirement("IDM-2")
@given(st.text('ab{}":', max_size=6), st.text('ab{}":', max_size=6))
def test_another_contract_or_other_arguments_make_another_fingerprint(one: str, other: str) -> None:
    arguments = {"a": one}
    assert (fingerprint(one, arguments) == fingerprint(other, arguments)) == (one == other)
    assert (fingerprint("c", {"a": one}) == fingerprint("c", {"a": other})) == (one == other)
