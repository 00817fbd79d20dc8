"""Which tools may this caller see, a page at a time?

Only the affordance of a contract is shown (CON-4); the system face stays inside.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from holdfast.model.fields import FieldError
from holdfast.ports import Listing
from holdfast.servers.members import LISTING, faults
from holdfast.servers.visit import Visit

PAGE = 100
"""Tools on one page where the caller does not say."""
LARGEST_PAGE = 500
"""An answer stays below a few megabytes even when every schema is large."""


def shown(listing: Listing) -> dict[str, Any]:
    """What a model may know about one tool version."""
    contract = listing.tool.contract
    return {
        "name": contract.tool,
        "version": contract.version,
        "status": listing.status,
        "effect": contract.effect,
        "key_required": contract.effect.needs_key,
        **contract.affordance.model_dump(mode="json"),
    }


def page(visit: Visit, wanted: dict[str, Any]) -> dict[str, Any]:
    """One page of `wanted`, which holds `q`, `cursor` and `limit` or fewer; raises Unacceptable."""
    visit.refuse(faults(wanted, LISTING))
    words = str(wanted.get("q") or "").lower().split()
    after = _after(visit, wanted.get("cursor"))
    size = min(wanted.get("limit") or PAGE, LARGEST_PAGE)
    rest = [
        (place, listing)
        for listing in sorted(visit.gateway.tools(visit.principal), key=_place)
        if (place := _place(listing)) > after and _mentions(listing, words)
    ]
    more = len(rest) > size
    found: dict[str, Any] = {
        "tools": [shown(listing) for _, listing in rest[:size]],
        "next_cursor": _cursor(rest[size - 1][0]) if more else None,
    }
    return found if rest else {**found, "hint": _hint(visit, words, after)}


def _hint(visit: Visit, words: list[str], after: "Place") -> str:
    """An empty list never stands alone: it says what it is empty of. POL-7."""
    if not visit.gateway.tools(visit.principal):
        return (
            "you hold no scope for any tool here; ask an operator, "
            "or for one tool that you know of: GET /v1/why?tool=NAME"
        )
    return "no tool that you may use mentions all these words" if words else "there are no more tools"


Place = tuple[str, str]
"""Name and version: where a listing stands, whatever came or went since the last page."""


def _place(listing: Listing) -> Place:
    return listing.tool.contract.tool, listing.tool.contract.version


def _mentions(listing: Listing, words: list[str]) -> bool:
    contract = listing.tool.contract
    text = f"{contract.tool} {contract.affordance.description} {' '.join(contract.identity.tags)}".lower()
    return all(word in text for word in words)


def _cursor(place: Place) -> str:
    return urlsafe_b64encode("@".join(place).encode()).decode().rstrip("=")


def _after(visit: Visit, cursor: str | None) -> Place:
    if cursor is None:
        return ("", "")
    try:
        name, at, version = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition("@")
    except ValueError:
        at = name = version = ""
    if not at:
        message = "member 'cursor' must be a 'next_cursor' of an earlier page"
        visit.refuse([FieldError("/cursor", "a 'next_cursor'", "something else", message)])
    return name, version
