"""Was this very listing imported before?

At its start a gateway reads what it knows from the lock file, and then asks the servers, most of which offer
just that. Then the import that was made need not be made again; it is put into the server's order.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.catalog.admission import Offer
from holdfast.catalog.imports.imported import Imported
from holdfast.catalog.imports.lock import Lock
from holdfast.catalog.imports.overlay import Overlay
from holdfast.model.contract import Contract


@dataclass(frozen=True, slots=True)
class Import:
    """One import of one upstream, with all that it was made from."""

    tools: Sequence[Any]
    overlay: Overlay
    lock: Lock
    around: Mapping[str, Contract]
    imported: Imported

    def is_of(self, overlay: Overlay, lock: Lock, around: Mapping[str, Contract]) -> bool:
        return (
            overlay is self.overlay
            and lock is self.lock
            and around.keys() == self.around.keys()
            and all(contract is self.around[tool] for tool, contract in around.items())
        )

    def again(self, tools: Sequence[Any]) -> Imported | None:
        """What these tools come to; None where that is not known yet."""
        listed, known = _by_name(tools), _by_name(self.tools)
        alone = len(listed) == len(tools) and len(known) == len(self.tools)
        if not alone or self.imported.quarantined or _texts(listed) != _texts(known):
            return None
        offers: dict[str, list[Offer]] = {name: [] for name in listed}
        for offer in self.imported.offers:
            name = str((offer.native or {}).get("name"))
            if name not in offers:
                return None
            offers[name].append(_as_listed(offer, known[name], listed[name]))
        return replace(self.imported, offers=[offer for some in offers.values() for offer in some])


def _by_name(tools: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Fewer than there are tools where one has no name, or two have the same."""
    return {tool["name"]: tool for tool in tools if isinstance(tool, dict) and type(tool.get("name")) is str}


def _texts(tools: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """These tell 1 from 1.0 and true, as `==` would not."""
    return {name: json.dumps(tool, sort_keys=True) for name, tool in tools.items()}


def _as_listed(offer: Offer, known: Mapping[str, Any], listed: Mapping[str, Any]) -> Offer:
    """Members are shown in the order in which the server wrote them; the lock file keeps them sorted."""
    shown = offer.native or {}
    ours = {name: value for name, value in shown.items() if value is not known.get(name)}
    kept = {name: value for name, value in listed.items() if name in shown}
    return replace(offer, native={**kept, **ours})
