"""How does an upstream say that there is news of a job? EXE-6.

The address is the credential: it was made for one submission and told to nobody else. All it can do is have
the job asked after sooner; nothing that is sent is read, much less believed.
"""

from math import ceil

from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway import Gateway
from holdfast.servers.answers import TransportError, answer

BODY = 65_536
"""What senders like to tell; nobody reads it."""


async def called_back(gateway: Gateway, request: Request) -> Response:
    """POST /v1/jobs/{word}"""
    wait_ms = gateway.jobs.crowded()
    if wait_ms is not None:
        wait = {"Retry-After": str(max(1, ceil(wait_ms / 1000)))}
        raise TransportError(429, "too much news at once", "it is asked after anyway", headers=wait)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY:
            raise TransportError(413, "nothing that is sent here is read", "send an empty body")
    if not await gateway.jobs.called_back(request.path_params["word"]):
        raise TransportError(404, "there is no such job, or it is over", "nothing needs to be done")
    return answer({"status": "it is asked after now"}, 202)
