"""What is a tool called over MCP?"""

from collections.abc import Iterable
from typing import Any

import pytest

from holdfast import tool
from holdfast.catalog.adapt import offers
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.model.errors import ConfigError
from holdfast.model.vocabulary import Effect, ToolStatus
from holdfast.ports import Listing
from holdfast.servers.mcp.names import Names
from tests.requirements import requirement


def reading(name: str, version: str = "1.0.0", **more: Any) -> Any:
    async def look() -> str:
        """Look at something."""
        return ""

    return tool(effect=Effect.READ_ONLY, name=name, version=version, **more)(look)


def listed(**namespaces: Iterable[Any]) -> list[Listing]:
    catalog = MemoryCatalog()
    for namespace, tools in namespaces.items():
        catalog.register(list(offers(namespace, list(tools))))
    return list(catalog.list())


@requirement("NAM-5")
def test_the_namespace_or_the_given_prefix_stands_before_the_name() -> None:
    names = Names(listed(shop=[reading("a")], desk=[reading("a")]), {"shop": None, "desk": "d"}, {})
    assert set(names.by_name) == {"shop__a", "d__a"}
    assert names.by_name["d__a"].tool == "desk.a"


@requirement("NAM-5")
def test_an_upstream_mounted_one_to_one_keeps_its_names() -> None:
    names = Names(listed(shop=[reading("a")], desk=[reading("a")]), {"shop": "", "desk": None}, {})
    assert set(names.by_name) == {"a", "desk__a"}


@requirement("NAM-5")
def test_no_name_is_longer_than_64_characters_and_none_is_lost_for_that() -> None:
    long = [reading("x" * 60 + end) for end in ("abcd", "abce")]
    names = Names(listed(warehouse=long), {}, {})
    assert len(names.by_name) == 2
    assert all(len(name) <= 64 for name in names.by_name)
    assert {entry.tool for entry in names.by_name.values()} == {
        "warehouse." + "x" * 60 + end for end in ("abcd", "abce")
    }


@requirement("NAM-5")
def test_two_tools_with_one_name_refuse_start_and_say_what_to_change() -> None:
    names = Names(listed(shop=[reading("a")], desk=[reading("a")]), {"shop": "", "desk": ""}, {})
    with pytest.raises(ConfigError, match=r"'desk\.a' and 'shop\.a' are both called 'a'.*another 'prefix'"):
        names.checked()


@requirement("NAM-5", "REG-4")
def test_of_several_versions_the_one_that_is_called_is_shown() -> None:
    versions = listed(shop=[reading("a", "1.0.0"), reading("a", "1.1.0")])
    assert Names(versions, {}, {}).by_name["shop__a"].listing.tool.contract.version == "1.1.0"
    pinned = Names(versions, {}, {"shop.a": "1.0.0"})
    assert pinned.by_name["shop__a"].listing.tool.contract.version == "1.0.0"


@pytest.mark.parametrize("status", list(ToolStatus))
@requirement("NAM-5", "REG-3")
def test_what_cannot_be_called_now_is_not_shown(status: ToolStatus) -> None:
    catalog = MemoryCatalog()
    catalog.register(list(offers("shop", [reading("a")])))
    catalog.set_status("shop.a", "1.0.0", status)
    callable_now = status in (ToolStatus.ACTIVE, ToolStatus.DEPRECATED, ToolStatus.PROVISIONAL)
    assert Names(catalog.list(), {}, {}).by_name["shop__a"].shown is callable_now
