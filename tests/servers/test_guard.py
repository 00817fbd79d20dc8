"""May a request come in at all, and what leaves when something breaks?"""

import logging
import re

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from holdfast.model.errors import ConfigError, Forbidden, HoldfastError, NotFound, StoreError
from holdfast.servers.answers import answer
from holdfast.servers.guard import Guard
from tests.requirements import requirement
from tests.servers.asgi import LOOPBACK, Client

SECRET = "sqlite3: cannot open /var/lib/holdfast/db for hunter2"


async def open_door(scope: Scope, receive: Receive, send: Send) -> None:
    await answer({"in": True})(scope, receive, send)


def local(host: str | None, origin: str | None = None, address: tuple[str, int] | None = LOOPBACK) -> Client:
    headers = {"host": host, "origin": origin}
    said = {name: value for name, value in headers.items() if value is not None}
    return Client(Guard(open_door, local=True), said, address)


def broken(error: Exception) -> Client:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    return Client(Guard(app, local=False), {})


@requirement("AUT-1")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:8080", 200),
        ("127.8.9.1", 200),
        ("[::1]:8080", 200),
        ("evil.example", 403),
        ("evil.example:8080", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("192.168.0.4:8080", 403),
        ("0.0.0.0:8080", 403),
        ("localhost@evil.example", 403),
        ("[::1", 403),
        ("", 403),
        (None, 403),
    ],
)
async def test_local_mode_takes_only_requests_addressed_to_loopback(host: str | None, status: int) -> None:
    assert (await local(host).get("/")).status == status


@requirement("AUT-1")
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://localhost:8080", 200),
        ("http://localhost:3000", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
    ],
)
async def test_local_mode_refuses_the_scripts_of_other_sites(origin: str | None, status: int) -> None:
    assert (await local("localhost:8080", origin).get("/")).status == status


@pytest.mark.parametrize(
    ("address", "status"),
    [(("10.0.0.9", 4), 403), (("::1", 4), 200), (None, 200)],
    ids=["lan", "ipv6", "unix"],
)
async def test_local_mode_refuses_other_machines(address: tuple[str, int] | None, status: int) -> None:
    assert (await local("localhost", None, address).get("/")).status == status


async def test_a_refused_stranger_is_told_what_to_do() -> None:
    said = (await local("evil.example").get("/")).json()
    assert "api_key" in said["next"]
    assert set(said) == {"error", "next"}


async def test_with_credentials_the_host_does_not_matter() -> None:
    client = Client(
        Guard(open_door, local=False), {"host": "gateway.example", "origin": "https://other.example"}
    )
    assert (await client.get("/")).status == 200


@requirement("LIF-5")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RuntimeError(SECRET), 500),
        (ConfigError(SECRET), 500),
        (StoreError(SECRET), 503),
        (RecursionError(SECRET), 500),
    ],
    ids=["anything", "config", "store", "recursion"],
)
async def test_what_breaks_inside_is_a_number_to_the_caller_and_a_traceback_to_the_operator(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "holdfast.servers"):
        said = await broken(error).get("/v1/tools")
    assert said.status == status
    assert set(said.json()) == {"error", "next", "incident"}
    assert not re.search(rb"hunter2|/var|Traceback|sqlite|Error", said.body)
    (record,) = caplog.records
    assert said.json()["incident"] in record.getMessage()
    assert record.exc_info
    assert record.exc_info[1] is error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound("no call 'x'"), 404),
        (Forbidden("needs role 'operator'"), 403),
        (HoldfastError("settled already"), 409),
    ],
)
async def test_what_is_refused_on_purpose_says_why(error: HoldfastError, status: int) -> None:
    said = await broken(error).get("/")
    assert said.status == status
    assert said.json()["error"] == str(error)


async def test_a_client_that_leaves_while_sending_is_not_an_incident(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(AssertionError, match="did not answer"):
        await broken(ClientDisconnect()).get("/")
    assert caplog.records == []


async def test_an_error_after_the_answer_began_is_left_to_the_server() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await open_door(scope, receive, send)
        raise RuntimeError("late")

    with pytest.raises(RuntimeError, match="late"):
        await Client(Guard(app, local=False), {}).get("/")
