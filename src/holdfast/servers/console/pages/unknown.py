"""*Unknown*: which outcomes does nobody know, and what is there to go by?"""

from starlette.responses import Response

from holdfast.model.view import Wanted
from holdfast.servers.console.asking import address
from holdfast.servers.console.look import Look

PAGE = 20
"""Each is looked up in the ledger; a person reads fewer at a time."""


async def page(look: Look) -> Response:
    """GET /unknown: oldest first, for they wait longest"""
    gateway, by, said = look.gateway, look.principal, look.query
    await gateway.views.fresh()
    found = await gateway.views.calls(by, Wanted(status="unknown", after=said.get("after", ""), limit=PAGE))
    waiting = []
    for row in found.rows:
        seen = await gateway.find(by, row.call_id)
        listing = next((one for one in gateway.catalog(by) if one.tool.contract.tool == row.tool), None)
        waiting.append((row, seen, None if listing is None else listing.tool.contract.transactional.probe))
    return await look.page(
        "unknown.html",
        calls=waiting,
        further=address("/unknown", said, after=found.rows[-1].call_id) if found.more else None,
        operates=gateway.operates(by),
    )
