"""Do the secrets exist that a configuration points at, and may they be used there?"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from holdfast.config.channels import Channel, secrets_of
from holdfast.config.place import Fault, Place, like
from holdfast.config.secrets import Secret
from holdfast.config.upstream import Upstream
from holdfast.model.secret import references

PLACES = (
    "upstreams.*.mcp.headers.*",
    "upstreams.*.mcp.env.*",
    "upstreams.*.mcp.auth.client_secret",
    "channels.*.webhook.secret",
    "channels.*.mail.password",
)
"""Where `${secret:NAME}` is filled in when it is used; nowhere else."""
POINTED_AT = PLACES[-2:]
"""Where nothing but a reference may stand."""
_REFERENCE = re.compile(r"\$\{(secret:[^{}]+|[A-Za-z_][A-Za-z0-9_]*)\}")

_FOR = "for headers, env and client_secret of an MCP server, and for the secrets of channels"


def misplaced(place: Place, text: str) -> Fault | None:
    """What is wrong with the references in a text."""
    try:
        named = list(references(text))
    except ValueError as error:
        return Fault(place, str(error))
    if not named or any(like(place, allowed) for allowed in PLACES):
        return None
    return Fault(place, f"'${{secret:{named[0]}}}' is {_FOR}")


def written_out(place: Place, text: str) -> Fault | None:
    """A secret that stands in the file itself."""
    if not any(like(place, pattern) for pattern in POINTED_AT) or _REFERENCE.fullmatch(text):
        return None
    return Fault(place, "no secret in the file; write '${secret:NAME}' or '${NAME}'")


def unresolved(
    secrets: Mapping[str, Secret], upstreams: Mapping[str, Upstream], channels: Mapping[str, Channel]
) -> Iterator[Fault]:
    for place, text in secrets_of(channels):
        for secret in references(text):
            yield from _fault(place, secret, secrets)
    for name, upstream in upstreams.items():
        for below, text in _texts(upstream):
            for secret in references(text):
                yield from _fault(("upstreams", name, "mcp", *below), secret, secrets)


def _texts(upstream: Upstream) -> Iterator[tuple[Place, str]]:
    server = upstream.mcp
    if server is None:
        return
    yield from ((("headers", name), text) for name, text in server.headers.items())
    yield from ((("env", name), text) for name, text in server.env.items())
    if server.auth is not None and server.auth.client_secret is not None:
        yield ("auth", "client_secret"), server.auth.client_secret


def _fault(place: Place, name: str, secrets: Mapping[str, Secret]) -> Iterator[Fault]:
    if name not in secrets:
        near = get_close_matches(name, secrets, n=1, cutoff=0.5)
        rest = f"did you mean {near[0]!r}?" if near else "add it under 'secrets'"
        yield Fault(place, f"there is no secret {name!r}; {rest}")
    elif (tenant := secrets[name].tenant) is not None:
        yield Fault(
            place,
            f"{name!r} is for tenant {tenant!r} alone, and this serves every tenant; "
            "let contracts name it under 'credentials'",
        )
