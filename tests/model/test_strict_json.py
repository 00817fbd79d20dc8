import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import strict_json
from holdfast.model.strict_json import DEFAULT_LIMITS, Limits, ParseError, check, parse
from tests.requirements import requirement

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


def refusal(raw: bytes | str, limits: Limits = DEFAULT_LIMITS) -> ParseError:
    with pytest.raises(ParseError) as refused:
        parse(raw, limits)
    return refused.value


@given(values, st.booleans())
def test_what_json_writes_is_read_back(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse(text) == value
    assert parse(text.encode()) == value


def carefully(raw: bytes | str) -> tuple[str, Any]:
    """What the parser says that looks at one thing after the other."""
    try:
        return "taken", strict_json._carefully(raw, DEFAULT_LIMITS)
    except ParseError as error:
        return error.code_hint, (error.message, error.path)


def outcome(raw: bytes | str) -> tuple[str, Any]:
    try:
        return "taken", parse(raw)
    except ParseError as error:
        return error.code_hint, (error.message, error.path)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """JSON as programs write it, with some of it changed, doubled or cut away."""
    blanks = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",  ", ":\t")]))
    text = json.dumps(draw(values), ensure_ascii=draw(st.booleans()), separators=blanks)
    for _ in range(draw(st.integers(0, 3))):
        at, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        piece = draw(st.sampled_from([text[at:end], '"a":1,', ", ", "\\u003a", "1E5", "-0", ":", '"', ""]))
        text = text[:at] + piece + text[draw(st.sampled_from([at, end])) :]
    return text.encode("utf-8", "surrogatepass")


@requirement("VAL-4")
@given(texts())
def test_the_fast_way_and_the_careful_way_read_the_same(raw: bytes) -> None:
    fast, careful = outcome(raw), carefully(raw)
    assert fast == careful
    assert repr(fast) == repr(careful)  # 1, 1.0 and true are equal, and not the same


@requirement("VAL-4")
@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":":"}',
        b'{"a":1,"a":"\\u003a"}',
        b'{"a, ":1,"a,":2}',
        b'{"a: ":1, "a:":2, "a: ":3}',
        b'{"a":1,"b":[{"a":1,"a":1}]}',
        b'{"a":1, "a":1}',
        b"[1.0, 1, 1e5, 100000.0, -0, -0.0, 12345678901234567890123]",
    ],
)
def test_no_duplicate_is_lost_however_it_is_written(raw: bytes) -> None:
    assert repr(outcome(raw)) == repr(carefully(raw))


@requirement("VAL-4")
@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ('{"a": 1, "a": 2}', "/a"),
        ('{"to": [{"x": 1}, {"x": 1, "y": 2, "x": 3}]}', "/to/1/x"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "/a/b"),
        ('[{"a": 1, "a": 2}, broken', ""),
    ],
)
def test_a_duplicate_key_is_refused_and_named(raw: str, path: str) -> None:
    error = refusal(raw)
    assert (error.code_hint, error.path) == ("syntax", path)
    assert "appears twice" in error.message


@requirement("VAL-4")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[1,]",
        b"{'a': 1}",
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"1e999",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'{"\\udc00": 1}',
        b"\xef\xbb\xbf{}",
        b"[1] [2]",
        b'"\n"',
        b"9" * 5000,
        "\ud800",
    ],
)
def test_what_is_not_json_everywhere_is_a_syntax_error(raw: bytes | str) -> None:
    assert refusal(raw).code_hint == "syntax"


@requirement("VAL-4")
def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    assert parse(b'"\\ud83d\\ude00"') == "\U0001f600"


@requirement("VAL-4")
def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    limits = Limits(max_bytes=10)
    assert parse(b'"12345678"', limits) == "12345678"
    assert refusal(b'"123456789"', limits).code_hint == "limits"
    assert refusal('"' + "é" * 5 + '"', limits).code_hint == "limits"


@requirement("VAL-4")
@pytest.mark.parametrize("opening", [b"[", b'{"a":', b"[[{},", b'[{"a":['])
def test_nesting_beyond_the_limit_is_refused_before_anything_is_built(opening: bytes) -> None:
    error = refusal(opening * 100_000)
    assert (error.code_hint, "nested deeper" in error.message) == ("limits", True)


@requirement("VAL-4")
@pytest.mark.parametrize("depth", range(5))
def test_the_depth_limit_is_exact(depth: int) -> None:
    raw = b"[" * depth + b'"[[[[[["' + b"]" * depth
    limits = Limits(max_depth=3)
    if depth <= 3:
        check(parse(raw, limits), limits)
    else:
        assert refusal(raw, limits).code_hint == "limits"
        with pytest.raises(ParseError, match="nested deeper"):
            check(json.loads(raw), limits)


@requirement("VAL-4")
@given(values, st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_text_and_value_are_held_to_the_same_limits(value: Any, depth: int, string: int, keys: int) -> None:
    limits = Limits(max_depth=depth, max_string=string, max_keys=keys)
    outcomes = []
    for attempt in (lambda: parse(json.dumps(value, indent=1), limits), lambda: check(value, limits)):
        try:
            attempt()
            outcomes.append("taken")
        except ParseError as error:
            outcomes.append(error.code_hint)
    assert outcomes[0] == outcomes[1]


@requirement("VAL-4")
def test_the_string_limit_counts_what_the_escapes_mean() -> None:
    limits = Limits(max_string=4)
    assert parse(b'"\\u0061\\u0062\\u0063\\u0064"', limits) == "abcd"
    assert refusal(b'"abcde"', limits).code_hint == "limits"
    assert refusal(b'{"abcde": 1}', limits).code_hint == "limits"


@requirement("VAL-4")
def test_a_python_value_that_json_cannot_say_is_refused_with_its_path() -> None:
    for odd in ({1, 2}, float("nan"), object(), {3: 4}, "\ud800"):
        with pytest.raises(ParseError) as refused:
            check({"a": [odd]})
        assert refused.value.path == "/a/0"


@requirement("VAL-4")
def test_a_python_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ParseError, match="nested deeper"):
        check(loop)


def test_an_integer_keeps_all_its_digits() -> None:
    assert parse(b"18446744073709551617") == 18446744073709551617
