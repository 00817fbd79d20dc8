"""Which pages are there?"""

from holdfast.servers.console.words import NAVIGATION

EVERYBODYS = {place.name.lower().replace(" ", "-"): place.path for place in NAVIGATION}
"""From the beginning."""

FULL = {
    **EVERYBODYS,
    "approval": "/approvals/{held}",
    "approval-half": "/approvals/{half}",
    "approval-hostile": "/approvals/{hostile}",
    "approval-denied": "/approvals/{denied}",
    "call-done": "/calls/{done_call}",
    "call-held": "/calls/{held_call}",
    "call-unknown": "/calls/{unknown_call}",
    "call-failed": "/calls/{failed_call}",
    "call-refused": "/calls/{refused_call}",
    "tool": "/catalog/shop.refund",
}
"""And those of what `filling.fill` made, by the names it gave."""
