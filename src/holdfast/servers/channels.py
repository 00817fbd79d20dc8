"""How do operators see over HTTP whether people are being told?"""

from typing import Any

from starlette.responses import Response

from holdfast.gateway.notices.notices import State
from holdfast.model.moment import iso
from holdfast.servers.answers import answer
from holdfast.servers.visit import Visit


async def channels(visit: Visit) -> Response:
    """GET /v1/channels"""
    found = await visit.gateway.notices.channels(visit.principal)
    return answer({"channels": [shown(state) for state in found]})


def shown(state: State) -> dict[str, Any]:
    tally = state.tally
    return {
        "name": state.name,
        "kind": state.kind,
        "events": list(state.events),
        "roles": list(state.roles),
        "sent": tally.sent,
        "waiting": tally.waiting,
        "failed": tally.failed,
        "last_sent_at": None if tally.last_sent_at is None else iso(tally.last_sent_at),
        "said": tally.said,
    }
