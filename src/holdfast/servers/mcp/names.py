"""What is a tool called over MCP, and which tool does an MCP name mean?

`<namespace>__<name>`, or `<prefix>__<name>` where the upstream is mounted under another prefix, or the
upstream's own name where it is mounted 1:1 (NAM-5). A name depends on nothing but its tool, so it stays the
same whoever asks and whatever else is listed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from holdfast.catalog.imports.names import mcp_name
from holdfast.model.errors import ConfigError
from holdfast.model.mcp import COMPANIONS
from holdfast.model.version import Candidate, choose, newest
from holdfast.model.vocabulary import ToolStatus
from holdfast.ports import Listing

KEY = "idempotency_key"
"""The argument a write offers to clients that cannot set `_meta`."""
UNSEEN = frozenset({ToolStatus.UNAVAILABLE, ToolStatus.QUARANTINED, ToolStatus.REVOKED, ToolStatus.SUNSET})

Prefixes = Mapping[str, str | None]
"""By namespace: None is the namespace itself, "" is 1:1."""


@dataclass(frozen=True)
class Entry:
    """One tool under its MCP name, in the version that is called when nobody names another."""

    name: str
    listing: Listing
    takes_key: bool
    """Whether `idempotency_key` beside its own arguments is ours."""

    @cached_property
    def tool(self) -> str:
        return self.listing.tool.contract.tool

    @cached_property
    def writes(self) -> bool:
        return self.listing.tool.contract.effect.writes

    @property
    def shown(self) -> bool:
        return self.listing.status not in UNSEEN


class Names:
    """All tools by their MCP names. What collides is in `collisions` and means the first of them."""

    def __init__(self, listings: Iterable[Listing], prefixes: Prefixes, pins: Mapping[str, str]) -> None:
        self.collisions: list[str] = []
        self.by_name: dict[str, Entry] = {}
        self.by_tool: dict[str, Entry] = {}
        for listing in _one_version_each(listings, pins):
            self._add(listing, prefixes)

    def _add(self, listing: Listing, prefixes: Prefixes) -> None:
        identity = listing.tool.contract.identity
        prefix = prefixes.get(identity.namespace)
        name = named(prefix, identity.namespace, identity.name, identity.upstream_name)
        entry = Entry(name, listing, _takes_key(listing, prefix))
        if (other := self.by_name.setdefault(name, entry)) is entry:
            self.by_tool[entry.tool] = entry
        else:
            self.collisions.append(
                f"'{entry.tool}' and '{other.tool}' are both called '{name}' over MCP; "
                f"give upstream '{identity.namespace}' another 'prefix'"
            )

    def checked(self) -> "Names":
        """Raises ConfigError where two tools have one name."""
        if self.collisions:
            raise ConfigError("; ".join(self.collisions))
        return self


def named(prefix: str | None, namespace: str, name: str, own: str | None = None) -> str:
    """What something of an upstream is called; `own` is what the upstream itself calls it."""
    return mcp_name(namespace if prefix is None else prefix, name, own or name, prefix == "")


def _one_version_each(listings: Iterable[Listing], pins: Mapping[str, str]) -> Iterator[Listing]:
    """Of each tool what a call without a version means: the pin, else the newest that is in use."""
    versions: dict[str, dict[str, Listing]] = {}
    for listing in listings:
        contract = listing.tool.contract
        if contract.identity.name not in COMPANIONS:
            versions.setdefault(contract.tool, {})[contract.version] = listing
    for tool, found in versions.items():
        candidates = [Candidate(version, one.status) for version, one in found.items()]
        chosen = choose(pins.get(tool), candidates) or newest(found)
        if chosen is not None:
            yield found[chosen]


def _takes_key(listing: Listing, prefix: str | None) -> bool:
    contract = listing.tool.contract
    if not contract.effect.writes or prefix == "":
        return False
    return KEY not in _properties(listing)


def _properties(listing: Listing) -> Mapping[str, object]:
    schema = listing.tool.contract.affordance.input_schema
    if listing.native is not None and isinstance(listing.native.get("inputSchema"), Mapping):
        schema = listing.native["inputSchema"]
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}
