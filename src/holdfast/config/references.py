"""Do the secrets exist that a configuration points at, and may they be used there?"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from holdfast.config.place import Fault, Place, like
from holdfast.config.secrets import Secret
from holdfast.config.upstream import Upstream
from holdfast.model.secret import references

PLACES = (
    "upstreams.*.mcp.headers.*",
    "upstreams.*.mcp.env.*",
    "upstreams.*.mcp.auth.client_secret",
)
"""Where `${secret:NAME}` is filled in when it is used; nowhere else."""


def misplaced(place: Place, text: str) -> Fault | None:
    """What is wrong with the references in a text."""
    try:
        named = list(references(text))
    except ValueError as error:
        return Fault(place, str(error))
    if not named or any(like(place, allowed) for allowed in PLACES):
        return None
    return Fault(place, f"'${{secret:{named[0]}}}' is for headers, env and client_secret of an MCP server")


def unresolved(secrets: Mapping[str, Secret], upstreams: Mapping[str, Upstream]) -> Iterator[Fault]:
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
