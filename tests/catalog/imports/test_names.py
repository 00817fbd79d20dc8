"""Is every imported name safe, its own, and never taken for another?"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.catalog.imports.names import alias, collisions, local_name, mcp_name, odd
from holdfast.model.contract import NAME
from holdfast.model.mcp import COMPANIONS
from tests.requirements import requirement


@requirement("REG-1")
@pytest.mark.parametrize("name", ["read_file", "get-sum", "X", "a" * 64, "v2"])
def test_a_name_that_fits_stays_as_it_is(name: str) -> None:
    assert local_name(name) == name


@requirement("REG-1")
@pytest.mark.parametrize("name", ["admin.tools.list", "a/b", "суп", "搜索", "a" * 65, "", "naïve name"])
def test_any_other_name_is_made_safe_with_a_hash_of_its_own(name: str) -> None:
    made = local_name(name)
    assert NAME.fullmatch(made)
    assert re.search(r"-x[0-9a-f]{8}$", made)
    assert local_name(made) != made  # nobody gets that name by asking for it


@requirement("REG-1")
@given(st.text(max_size=80), st.text(max_size=80))
def test_two_native_names_never_meet(one: str, other: str) -> None:
    assert NAME.fullmatch(local_name(one))
    assert (local_name(one) == local_name(other)) == (one == other)


@requirement("REG-1")
@pytest.mark.parametrize("name", sorted(COMPANIONS))
def test_no_upstream_gets_a_name_that_is_ours(name: str) -> None:
    assert local_name(name) not in COMPANIONS


@requirement("NAM-5")
def test_over_mcp_a_tool_has_its_namespace_in_front_unless_mounted_plainly() -> None:
    assert mcp_name("files", "read_file", "read_file", False) == "files__read_file"
    assert mcp_name("x", "a-b-x12345678", "a.b", False) == "x__a-b-x12345678"
    assert mcp_name("", "a-b-x12345678", "a.b", True) == "a.b"


@requirement("NAM-5")
@given(st.from_regex(r"[a-z0-9-]{1,32}", fullmatch=True), st.text(min_size=1, max_size=128))
def test_an_mcp_name_has_at_most_64_characters(namespace: str, native: str) -> None:
    name = mcp_name(namespace, local_name(native), native, False)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)


@requirement("NAM-5")
def test_long_names_that_differ_at_the_end_stay_different() -> None:
    names = {mcp_name("a-long-namespace", "x" * 60 + end, "", False) for end in ("aaaa", "aaab", "aaac")}
    assert len(names) == 3
    assert {len(name) for name in names} == {64}


@requirement("NAM-5")
def test_a_cached_alias_is_named_after_server_and_tool() -> None:
    assert alias("git-hub", "list_issues") == "mcp_git-hub_list_issues"
    assert len(alias("n" * 32, "t" * 64)) == 64


@requirement("REG-1")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("read\u200bfile", "nobody sees"),
        ("read\u2060file", "nobody sees"),
        ("read\ufe0ffile", "nobody sees"),
        ("read\U000e0061", "nobody sees"),
        ("read\u3164file", "nobody sees"),
        ("elif\u202edaer", "direction"),
        ("read\x1b[31m", "control characters"),
        ("read\x00", "control characters"),
        ("read file", "white space"),
        ("read\u00a0file", "white space"),
        ("r" * 129, "more than 128"),
        ("   ", "empty"),
        ("re\u0430d_file", "mixes alphabets"),
        ("\u0430\u0440\u0440\u04cf\u0435", "look like Latin"),
        ("\uff52ead", "compatibility letters"),
        ("\u03bfpen", "mixes alphabets"),
    ],
)
def test_a_name_that_is_not_what_it_looks_like_is_odd(name: str, why: str) -> None:
    assert any(why in reason for reason in odd(name))


@pytest.mark.parametrize(
    "name", ["read_file", "a.b/c", "поиск", "搜索", "récupérer", "ファイル", "αναζήτηση"]
)
def test_an_honest_name_of_any_alphabet_is_not_odd(name: str) -> None:
    assert odd(name) == []


@requirement("REG-1")
@pytest.mark.parametrize(
    "pair",
    [
        ("read_file", "Read_File"),
        ("read_file", "read_fi1e"),
        ("list", "1ist"),
        ("list", "Iist"),
        ("tool0", "toolO"),
        ("read", "re\u0430d"),
        ("read", "re\u200bad"),
        ("read", "\uff52ead"),
    ],
)
def test_names_that_look_alike_are_found(pair: tuple[str, str]) -> None:
    [group] = collisions([*pair, "other"]).values()
    assert group == pair


def test_names_that_differ_visibly_do_not_collide() -> None:
    assert collisions(["read_file", "read_files", "write_file", "read_file"]) == {}
