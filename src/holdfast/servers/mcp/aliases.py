"""Which reads stand in a short list under a name of their own?

S3's four constraints (REG-9): an alias `mcp_<server>_<tool>` is made only from what was discovered already,
only for a read of an MCP server, only where an operator pinned it, and it is no way around anything: a call
by it is a call of its tool. Every alias is dropped when another policy is put in force, and looked at anew.
"""

from typing import TYPE_CHECKING

from holdfast.catalog.imports.names import alias
from holdfast.servers.mcp.names import Entry, Names

if TYPE_CHECKING:
    from holdfast.servers.mcp.hub import Hub


class Aliases:
    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._made_for: tuple[str, Names] | None = None
        self._entries: dict[str, Entry] = {}

    def find(self, name: str) -> Entry | None:
        return self._current().get(name)

    def of(self, entry: Entry) -> Entry:
        """The entry under its alias, where it has one."""
        return next((one for one in self._current().values() if one.listing is entry.listing), entry)

    def _current(self) -> dict[str, Entry]:
        made_for = (self._hub.gateway.policies.version, self._hub.names)
        if self._made_for is None or self._made_for != made_for:
            self._made_for = made_for
            self._entries = {one.name: one for one in map(_entry, self._eligible())}
        return self._entries

    def _eligible(self) -> list[Entry]:
        return [
            entry
            for entry in self._hub.names.by_tool.values()
            if entry.listing.native is not None and not entry.writes and self._hub.pinned(entry)
        ]


def _entry(entry: Entry) -> Entry:
    identity = entry.listing.tool.contract.identity
    return Entry(alias(identity.namespace, identity.name), entry.listing, entry.takes_key)
