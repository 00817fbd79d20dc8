"""Is everything of one upstream swapped at once, or nothing at all?"""

from typing import Any

import pytest

from holdfast.catalog.admission import Offer
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.model.contract import Contract
from holdfast.model.errors import AdmissionError
from holdfast.model.vocabulary import ToolStatus
from tests.catalog.contracts import INPUT, READING, document, get_order, low, medium, offer
from tests.requirements import requirement

RELIES = {"lookups": {"order": READING}}


def names(tools: MemoryCatalog) -> list[str]:
    return sorted(f"{one.tool.contract.tool}@{one.tool.contract.version}" for one in tools.list())


def verbatim(contract: Contract, **parts: Any) -> Offer:
    return offer(contract, verbatim=True, **parts)


def elsewhere(name: str = "ping") -> Contract:
    tree = document(name, "READ_ONLY", identity={"namespace": "desk"})
    return Contract.model_validate(tree)


@requirement("REG-2", "REG-1")
def test_one_upstream_is_swapped_and_the_others_are_left_alone() -> None:
    tools = MemoryCatalog()
    tools.register([offer(elsewhere())])
    tools.replace("shop", [verbatim(get_order()), verbatim(low())])
    assert names(tools) == ["desk.ping@1.0.0", "shop.get_order@1.0.0", "shop.tag_order@1.0.0"]
    tools.replace("shop", [verbatim(get_order(identity={"version": "1.0.1"}))])
    assert names(tools) == ["desk.ping@1.0.0", "shop.get_order@1.0.1"]
    tools.replace("shop", [])
    assert names(tools) == ["desk.ping@1.0.0"]


@requirement("REG-2")
@pytest.mark.parametrize(
    "spoiled",
    [
        low(idempotency=None),
        get_order(identity={"version": "soon"}),
        low(**RELIES),  # on what is not there
        get_order(affordance={"input_schema": {"type": "object", "$ref": "https://example.test/x"}}),
    ],
)
def test_a_refused_swap_changes_nothing(spoiled: Contract) -> None:
    tools = MemoryCatalog()
    tools.replace("shop", [verbatim(medium())], {("shop.cancel_order", "1.0.0"): ToolStatus.QUARANTINED})
    before = list(tools.list())
    with pytest.raises(AdmissionError):
        tools.replace("shop", [verbatim(elsewhere("other")), verbatim(spoiled)])
    assert list(tools.list()) == before


@requirement("REG-1")
def test_the_namespace_of_another_upstream_stays_its_own() -> None:
    tools = MemoryCatalog()
    tools.register([offer(elsewhere())])
    with pytest.raises(AdmissionError, match="belongs to upstream 'desk'"):
        tools.replace("shop", [verbatim(elsewhere("pong"))])
    assert names(tools) == ["desk.ping@1.0.0"]


@requirement("REG-1", "REG-8")
def test_statuses_are_set_with_the_swap_and_forgotten_with_the_next() -> None:
    tools = MemoryCatalog()
    key = ("shop.get_order", "1.0.0")
    tools.replace("shop", [verbatim(get_order())], {key: ToolStatus.QUARANTINED})
    assert [listing.status for listing in tools.list()] == [ToolStatus.QUARANTINED]
    assert get_order().identity.status is ToolStatus.ACTIVE
    tools.replace("shop", [verbatim(get_order())])
    assert [listing.status for listing in tools.list()] == [ToolStatus.ACTIVE]


@requirement("REG-2")
def test_a_name_is_resolved_anew_after_the_swap() -> None:
    tools = MemoryCatalog()
    tools.replace("shop", [verbatim(get_order())])
    assert tools.find("shop.get_order", None) is not None
    tools.replace("shop", [verbatim(low())])
    assert tools.find("shop.get_order", None) is None


def test_what_stays_as_it_is_is_not_compiled_again() -> None:
    tools = MemoryCatalog()
    [before] = tools.replace("shop", [verbatim(get_order())])
    after, fresh = tools.replace("shop", [verbatim(get_order(), native={"title": "new"}), verbatim(low())])
    assert after.tool is before.tool
    assert after.native == {"title": "new"}
    assert fresh.tool.contract == low()


def test_what_differs_in_its_life_alone_is_made_anew() -> None:
    tools = MemoryCatalog()
    tools.replace("shop", [verbatim(get_order())])
    [after] = tools.replace("shop", [verbatim(get_order(identity={"status": "deprecated"}))])
    assert after.tool.contract.identity.status is ToolStatus.DEPRECATED


@requirement("REG-2")
def test_what_is_offered_together_may_rely_on_each_other_in_any_order() -> None:
    tools = MemoryCatalog()
    tools.replace("shop", [verbatim(low(**RELIES)), verbatim(get_order())])
    tools.replace("shop", [verbatim(low(**RELIES)), verbatim(get_order())])
    with pytest.raises(AdmissionError, match=r"reads 'shop\.get_order', which is not in the catalog"):
        tools.replace("shop", [verbatim(low(**RELIES))])
    assert names(tools) == ["shop.get_order@1.0.0", "shop.tag_order@1.0.0"]


def test_a_tool_may_rely_on_another_upstreams() -> None:
    reads = {"lookups": {"there": {"tool": "desk.ping", "arguments": {"order_id": "=args.order_id"}}}}
    tools = MemoryCatalog()
    with pytest.raises(AdmissionError):
        tools.replace("shop", [verbatim(low(**reads))])
    tools.register([offer(elsewhere())])
    tools.replace("shop", [verbatim(low(**reads))])


@requirement("REG-5")
def test_versions_side_by_side_are_held_to_their_steps() -> None:
    tools = MemoryCatalog()
    retyped = {"affordance": {"input_schema": {**INPUT, "required": ["order_id", "shop"]}}}
    small = verbatim(get_order(identity={"version": "1.0.1"}, **retyped))
    with pytest.raises(AdmissionError, match="needs a major version"):
        tools.replace("shop", [verbatim(get_order()), small])
    large = verbatim(get_order(identity={"version": "2.0.0"}, **retyped))
    tools.replace("shop", [verbatim(get_order()), large])
    assert names(tools) == ["shop.get_order@1.0.0", "shop.get_order@2.0.0"]


@requirement("CON-2", "REG-1")
def test_a_version_that_is_there_cannot_become_another_contract() -> None:
    tools = MemoryCatalog()
    tools.replace("shop", [verbatim(get_order())])
    other = get_order(affordance={"description": "Something else entirely"})
    with pytest.raises(AdmissionError, match="is taken by another contract"):
        tools.replace("shop", [verbatim(other)])
