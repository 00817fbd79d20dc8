"""Which pages are there, and what does the console say of what was done?"""

from typing import NamedTuple


class Place(NamedTuple):
    """One page, as the navigation names it."""

    path: str
    name: str
    key: str
    """After `g`, this letter goes there."""


NAVIGATION = (
    Place("/", "Inbox", "i"),
    Place("/live", "Live", "l"),
    Place("/chains", "Chains", "h"),
    Place("/catalog", "Catalog", "c"),
    Place("/policy", "Policy", "p"),
    Place("/rules", "Rules and plans", "r"),
    Place("/audit", "Audit", "a"),
    Place("/costs", "Budgets and costs", "b"),
    Place("/upstreams", "Upstreams", "u"),
    Place("/unknown", "Unknown", "n"),
)

DONE = {
    "approved": "Approved.",
    "asked": "Asked. It stands once enough people have said yes.",
    "denied": "Denied. Nothing runs, and this key stays denied.",
    "voted": "Your answer counts. Others still have to say yes.",
    "settled": "Settled.",
    "rolled_back": "Rolled back. Nothing of that session is left.",
    "cancelled": "Cancelled.",
    "abandoned": "Abandoned. What was done stays done.",
    "halted": "Halted, in every process.",
    "chosen": "Chosen. It goes on.",
    "resumed": "Resumed.",
    "restarted": "Restarted.",
    "accepted": "Accepted.",
    "revoked": "Revoked.",
    "promoted": "In force.",
    "rolled-back": "The policies before these are in force again.",
}
"""What `?done=` may say; nothing of it comes from the address itself."""
