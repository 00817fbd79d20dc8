"""Do patterns cover what they should, and does narrowing ever widen?"""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.model.scopes import check, covers, covers_all, intersect, within
from tests.requirements import requirement

WORDS = st.sampled_from(["a", "b", "ab", "abc"])
SCOPES = st.lists(WORDS, min_size=1, max_size=4).flatmap(
    lambda words: st.lists(st.sampled_from(":/"), min_size=len(words) - 1, max_size=len(words) - 1).map(
        lambda separators: "".join(w + s for w, s in zip(words, [*separators, ""], strict=True))
    )
)
PATTERN_WORDS = st.sampled_from(["a", "b", "ab", "abc", "*", "a*", "*b", "a*c", "**"])
PATTERNS = st.lists(PATTERN_WORDS, min_size=1, max_size=4).map(":".join).filter(lambda p: check(p) is None)
SETS = st.frozensets(PATTERNS, max_size=3)


@st.composite
def around(draw: st.DrawFn, words: list[str]) -> str:
    """A pattern that covers these words: some of them, or runs of them, made wider."""
    pattern: list[str] = []
    while words:
        wider = draw(st.sampled_from(["same", "*", "**"]))
        eaten = draw(st.integers(1, len(words))) if wider == "**" and pattern.count("**") < 2 else 1
        pattern.append(words[0] if wider == "same" or pattern.count("**") == 2 else wider)
        words = words[eaten:]
    return ":".join(pattern)


COVERED = st.lists(WORDS, min_size=1, max_size=5).flatmap(
    lambda words: st.tuples(st.just(":".join(words)), around(words), around(words))
)


def stands_for(pattern: str, scope: str) -> bool:
    """What a pattern means, said another way: as a regular expression over the whole scope."""
    text = ":".join(
        "[^:/]+" if word == "*" else ".+" if word == "**" else re.escape(word).replace(r"\*", "[^:/]*")
        for word in pattern.split(":")
    )
    return re.fullmatch(text, scope) is not None


@requirement("AUT-4")
@pytest.mark.parametrize(
    ("pattern", "covered", "not_covered"),
    [
        ("orders:read", ["orders:read"], ["orders:reads", "orders", "orders:read:all", "ORDERS:READ"]),
        ("orders:*", ["orders:read"], ["orders", "orders:read:all", "order:read", "orders/read"]),
        ("a:*:b", ["a:x:b"], ["a:/:b", "a:x/b"]),
        ("orders:re*", ["orders:read", "orders:re"], ["orders:write", "orders:re:x"]),
        ("orders:**", ["orders:read", "orders:read:all"], ["orders", "refunds:read"]),
        ("**", ["orders", "orders:read", "file:read:/workspace/a"], []),
        ("*", ["orders"], ["orders:read"]),
        ("**:read", ["orders:read", "a:b:read"], ["read", "orders:write"]),
        (
            "file:read:/workspace/*",
            ["file:read:/workspace/a"],
            ["file:read:/workspace/a/b", "file:read:/etc/a"],
        ),
        (
            "file:read:/workspace/**",
            ["file:read:/workspace/a/b"],
            ["file:read:/workspace", "file:write:/workspace/a"],
        ),
    ],
)
def test_a_star_stays_in_its_word_and_two_cross(
    pattern: str, covered: list[str], not_covered: list[str]
) -> None:
    assert check(pattern) is None
    assert [scope for scope in covered if not covers([pattern], scope)] == []
    assert [scope for scope in not_covered if covers([pattern], scope)] == []


@requirement("AUT-4")
@given(PATTERNS, SCOPES)
def test_patterns_mean_what_the_regular_expression_says(pattern: str, scope: str) -> None:
    assert covers([pattern], scope) == stands_for(pattern, scope)


@requirement("AUT-5")
@given(SETS, SETS, SCOPES)
def test_narrowing_never_widens(left: frozenset[str], right: frozenset[str], scope: str) -> None:
    if covers(intersect(left, right), scope):
        assert covers(left, scope)
        assert covers(right, scope)


@requirement("AUT-5")
@given(SETS, SETS, SCOPES)
def test_narrowing_keeps_what_both_hold_where_no_two_partial_words_meet(
    left: frozenset[str], right: frozenset[str], scope: str
) -> None:
    partial = re.compile(r"[a-z]\*|\*[a-z]")
    assume(not any(map(partial.search, left)) or not any(map(partial.search, right)))
    assert covers(intersect(left, right), scope) == (covers(left, scope) and covers(right, scope))


@requirement("AUT-5")
@given(COVERED)
def test_what_two_patterns_cover_their_meeting_covers(covered: tuple[str, str, str]) -> None:
    scope, left, right = covered
    assert covers([left], scope)
    assert covers([right], scope)
    assert covers(intersect(frozenset([left]), frozenset([right])), scope)


@requirement("AUT-5")
@given(SETS, SETS, SETS, SCOPES)
def test_a_longer_chain_never_holds_more(
    user: frozenset[str], agent: frozenset[str], key: frozenset[str], scope: str
) -> None:
    if covers(intersect(intersect(user, agent), key), scope):
        assert covers(intersect(user, agent), scope)


@given(PATTERNS, PATTERNS, SCOPES)
def test_what_is_within_a_pattern_is_covered_by_it(narrow: str, wide: str, scope: str) -> None:
    if within(narrow, wide) and covers([narrow], scope):
        assert covers([wide], scope)


@given(SETS)
def test_meeting_oneself_or_everything_changes_nothing_that_counts(held: frozenset[str]) -> None:
    for other in (held, frozenset(["**"])):
        met = intersect(held, other)
        assert all(covers(met, pattern) for pattern in held)


def test_all_that_is_required_must_be_held() -> None:
    held = frozenset(["orders:*"])
    assert covers_all(held, ())
    assert covers_all(held, ("orders:read", "orders:write"))
    assert not covers_all(held, ("orders:read", "refunds:create"))
    assert not covers_all(frozenset(), ("orders:read",))


def test_a_pattern_that_is_required_needs_all_of_it() -> None:
    assert covers(["orders:**"], "orders:*")
    assert not covers(["orders:read"], "orders:*")
    assert not covers(["orders:*"], "orders:**")


@requirement("AUT-5")
def test_what_patterns_cost_is_bounded_whoever_wrote_them() -> None:
    """Each of these took minutes, or more than the stack holds, when every way to read them was tried."""
    assert not within("a" * 200, "*a" * 100 + "b")
    assert within("a" * 200, "*a" * 100)
    assert covers(["files/**"], "files/" + "a/" * 2000 + "a")
    left = frozenset(f"x{i}:*:*" for i in range(64))
    right = frozenset(f"*:y{i}:*" for i in range(64))
    assert 0 < len(intersect(left, right)) <= 64
    crossing = [frozenset(f"**:{':'.join([word] * 12)}:{i}:**" for i in range(64)) for word in "ab"]
    met = intersect(*crossing)
    assert all(covers(side, pattern) for pattern in met for side in crossing)


@requirement("AUT-5")
def test_a_set_that_meets_a_wider_one_is_kept_whole() -> None:
    held = frozenset(f"service{i}:read" for i in range(500))
    assert intersect(held, frozenset(["**"])) == held
    assert intersect(held, frozenset(f"service{i}:*" for i in range(400))) < held


def test_a_pattern_has_so_many_words_and_no_more() -> None:
    assert check(":".join("a" * 16)) is None
    assert "words" in str(check(":".join("a" * 17)))
