"""Is what Holdfast finds out by itself, to spare a second of import, what the SDK would have said?"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS, get_default_environment
from mcp.shared.inbound import encode_header_value, find_invalid_x_mcp_header, x_mcp_header_map

from holdfast.upstreams.mcp.child import environment
from holdfast.upstreams.mcp.marks import MARK, marked, misused, paths, written
from holdfast.upstreams.mcp.target import StdioTarget

LEAVES = st.sampled_from(["string", "number", "Region", "region", "", "two words", 7, None, True])
KEYS = st.sampled_from([MARK, "type", "properties", "items", "anyOf", "$defs", "region", "place"])
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
PLAIN: Mapping[str, Any] = {"type": "object", "properties": {"place": {"type": "string"}}}
REGION: Mapping[str, Any] = {"properties": {"region": {"type": "string", MARK: "Region"}}}


@given(SCHEMAS)
def test_marks_are_judged_as_the_sdk_judges_them(schema: Any) -> None:
    assert misused(schema) == find_invalid_x_mcp_header(schema)
    assert paths(schema) == ({} if misused(schema) is not None else x_mcp_header_map(schema))


@given(st.text() | st.sampled_from(["", " a", "a ", "a b", "=?base64?YQ==?=", "=?", "\x7f", "a\tb", "\xa0"]))
def test_a_value_is_written_as_the_sdk_writes_it(value: str) -> None:
    assert written(value) == encode_header_value(value)


def test_a_mark_is_seen_and_a_schema_without_one_is_not_looked_into() -> None:
    assert (marked(PLAIN), paths(PLAIN), misused(PLAIN)) == (False, {}, None)
    assert (marked(REGION), paths(REGION), misused(REGION)) == (True, {("region",): "Region"}, None)
    assert misused({"items": REGION["properties"]["region"]}) is not None


def test_a_server_inherits_what_the_sdk_would_let_it_and_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*DEFAULT_INHERITED_ENV_VARS, "TZ", "HOLDFAST_TOKEN"):
        monkeypatch.setenv(name, f"the {name}")
    monkeypatch.setenv("TERM", "() { :; }")  # a function of a shell
    for name in ("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    given = environment(StdioTarget("server", env={"KEY": "value"}))
    assert given == get_default_environment() | {"TZ": "the TZ", "KEY": "value"}
    assert "TERM" not in given
