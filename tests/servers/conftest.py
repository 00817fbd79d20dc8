"""Which gateway do the tests of the doors speak to?"""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from starlette.applications import Starlette

from holdfast.gateway import Gateway
from holdfast.identity.keys import hash_chosen
from holdfast.servers.app import build
from holdfast.servers.openapi import document
from tests.servers.asgi import Client
from tests.servers.desk import DESKS, Desk

PETRAS_SECRET = "correct horse"
PEOPLE = {
    "ann": {"scopes": ["notes:*", "mail:*"], "trust": 80},
    "bob": {"scopes": ["notes:read"], "trust": 80},
    "petra": {"roles": ["operator"], "approver_secret": hash_chosen(PETRAS_SECRET)},
    "olga": {"roles": ["operator"], "scopes": ["notes:*"], "trust": 80},
}
LOCAL = {"host": "127.0.0.1:8080"}


@pytest.fixture
def desk() -> Iterator[Desk]:
    DESKS.append(Desk())
    yield DESKS[-1]
    DESKS.pop()


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{tmp_path}/holdfast.db",
        "upstreams": {"desk": {"functions": "tests.servers.desk:desk"}},
        "auth": {"mode": "local", "people": PEOPLE},
        "limits": {"body_bytes": 20_000, "depth": 8, "string": 2_000, "keys": 100},
    }


@pytest.fixture
async def gateway(config: dict[str, Any], desk: Desk) -> AsyncIterator[Gateway]:
    async with Gateway.open(config) as opened:
        yield opened


@pytest.fixture
def short(request: pytest.FixtureRequest) -> bool:
    """Whether plain calls take the short way."""
    return bool(getattr(request, "param", True))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module that says `BOTH_WAYS = True` is run once with the short way and once without it."""
    if "short" in metafunc.fixturenames and getattr(metafunc.module, "BOTH_WAYS", False):
        metafunc.parametrize("short", [True, False], ids=["short", "general"], indirect=True)


@pytest.fixture
def app(gateway: Gateway, short: bool) -> Starlette:
    return build(gateway, short=short)


@pytest.fixture
def as_person(app: Starlette) -> Callable[[str], Client]:
    return lambda name: Client(app, {**LOCAL, "x-holdfast-user": name})


@pytest.fixture
def client(as_person: Callable[[str], Client]) -> Client:
    return as_person("ann")


@pytest.fixture(scope="session")
def observed() -> Callable[[Any], Any]:
    """Gives an observation back if it is one by the published schema."""
    validator = jsonschema_rs.Draft202012Validator(
        {"$ref": "#/components/schemas/Observation", "components": document()["components"]}
    )

    def check(said: Any) -> Any:
        validator.validate(said)
        return said

    return check
