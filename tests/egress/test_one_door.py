"""Is there one place where the gateway connects to the network, and only one?"""

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast
from tests.requirements import requirement

ROOT = Path(holdfast.__file__).parent
GUARD = "upstreams/http/guard.py"
CLIENTS = frozenset({"aiohttp", "httpx", "requests", "urllib.request", "http.client", "urllib3", "ftplib"})
DIALS = frozenset(
    {"open_connection", "create_connection", "start_connection", "sock_connect", "getaddrinfo", "connect_ex"}
    | {
        "gethostbyname",
        "AsyncClient",
        "HTTPTransport",
        "AsyncHTTPTransport",
        "sse_client",
        "streamable_http_client",
    }
)
ELSEWHERE = {
    "cli/listening.py: getaddrinfo",  # where to listen
}


def dialled(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names if one.name in CLIENTS)
            case ast.ImportFrom(module=str() as module, names=names):
                both = [module, *(f"{module}.{one.name}" for one in names)]
                yield from (name for name in both if name in CLIENTS)
                yield from (one.name for one in names if one.name in DIALS)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
                given = any(one.arg == "sock" for one in keywords)  # connected already, by the guard
                if name in DIALS and not given:
                    yield name


@requirement("POL-6")
def test_nothing_but_the_guard_connects_to_the_network() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {what}"
        for path in ROOT.rglob("*.py")
        for what in dialled(ast.parse(path.read_text()))
    }
    assert {one for one in found if not one.startswith(GUARD)} == ELSEWHERE
    assert {one for one in found if one.startswith(GUARD)} == {
        f"{GUARD}: getaddrinfo",
        f"{GUARD}: start_connection",
    }
