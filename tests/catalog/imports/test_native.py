"""Does what a server has beside tools pass through contracts of our own?"""

import pytest

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.imports.native import companions
from holdfast.model.mcp import COMPANIONS
from holdfast.model.vocabulary import Effect, ToolStatus
from tests.catalog.imports.descriptors import take, tool
from tests.requirements import requirement


@requirement("NAM-5")
@pytest.mark.parametrize(
    ("capabilities", "names"),
    [
        ({}, []),
        ({"tools": {}}, []),
        ({"resources": {}}, ["mcp-resources-read"]),
        ({"prompts": {"listChanged": True}}, ["mcp-prompts-get"]),
        ({"resources": None, "completions": {}}, ["mcp-completion-complete"]),
        ({"resources": {}, "prompts": {}, "completions": {}}, sorted(COMPANIONS, reverse=True)),
    ],
)
def test_what_a_server_says_it_has_gets_a_contract(capabilities: dict[str, object], names: list[str]) -> None:
    made = [offer.contract.identity.name for offer in companions("files", capabilities)]
    assert sorted(made, reverse=True) == names


@requirement("NAM-5")
def test_they_read_for_those_who_may_and_no_list_shows_them() -> None:
    offers = companions("files", {"resources": {}, "prompts": {}, "completions": {}})
    listings = MemoryCatalog().replace("files", [*offers, *take(tool()).offers])
    for listing in listings[:3]:
        contract = listing.tool.contract
        assert (contract.effect, listing.status) == (Effect.READ_ONLY, ToolStatus.ACTIVE)
        assert contract.security.required_scopes == ("files:read",)
        assert contract.runtime.timeout_class == "long_running"
        assert listing.native is None


@pytest.mark.parametrize(
    ("name", "arguments", "fits"),
    [
        ("mcp-resources-read", {"uri": "demo://a b/{c}"}, True),
        ("mcp-resources-read", {}, False),
        ("mcp-resources-read", {"uri": "a", "more": 1}, False),
        ("mcp-prompts-get", {"name": "greet"}, True),
        ("mcp-prompts-get", {"name": "greet", "arguments": {"who": "Ann", "n": 3}}, True),
        ("mcp-prompts-get", {"arguments": {}}, False),
        ("mcp-completion-complete", {"ref": {"type": "ref/prompt"}, "argument": {"name": "a"}}, True),
        ("mcp-completion-complete", {"ref": {}}, False),
    ],
)
def test_their_arguments_are_those_of_the_protocol(
    name: str, arguments: dict[str, object], fits: bool
) -> None:
    offers = companions("files", {"resources": {}, "prompts": {}, "completions": {}})
    listings = {one.tool.contract.identity.name: one for one in MemoryCatalog().replace("files", offers)}
    assert listings[name].tool.input.is_valid(arguments) is fits
