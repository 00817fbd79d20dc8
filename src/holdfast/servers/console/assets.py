"""Where do scripts, styles and pictures come from? From the package, each under a name of its content."""

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from holdfast.servers.answers import TransportError, refused
from holdfast.servers.console.writing import asset as named

FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


async def asset(request: Request) -> Response:
    """GET /assets/{digest}/{name}"""
    name = request.path_params["name"]
    if name not in _shipped() or named(name) != request.url.path:
        return refused(TransportError(404, "there is no such asset", "open the page again"))
    content, kind = _shipped()[name]
    return Response(content, headers=FOR_EVER, media_type=kind)


@cache
def _shipped() -> dict[str, tuple[bytes, str]]:
    """All of them by name: what is asked for is looked up here and never becomes a path."""
    folder = files("holdfast.servers.console").joinpath("assets")
    found = {}
    for prefix, place in (("", folder), ("vendor/", folder.joinpath("vendor"))):
        for file in place.iterdir():
            kind = KINDS.get(file.name.rpartition(".")[2])
            if file.is_file() and kind is not None:
                found[prefix + file.name] = (file.read_bytes(), kind)
    return found
