"""Does a secret come out anywhere it should not?

Two canaries are put in through every channel a caller or operator has. They may reach the tool, and nobody
else: no log line, span, metric, error or other principal's observation.
"""

import io
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, cast

import pytest
from pydantic import Field

from holdfast import Effect, Gateway, NoEffect, tool
from holdfast.model.observation import Status
from holdfast.servers.app import build
from holdfast.telemetry.logs import configure
from tests.lifecycle.world import opened
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.telemetry.world import ANA, OLGA, PEOPLE, WRITE, Open, Seen, said

SECRET = "canary-s3cr3t-77"
PERSON = "Ada Canary <ada@example.org>"
CANARIES = (SECRET, PERSON, "ada@example.org")

Secret = Annotated[str, Field(json_schema_extra={"x-sensitivity": "secret"})]
Person = Annotated[str, Field(json_schema_extra={"x-sensitivity": "pii"})]


class Vault:
    """Tools that do with what they are given what tools do."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []

    @tool(**WRITE)
    async def store(self, password: Secret, owner: Person, how: str = "well") -> dict[str, Any]:
        """Store a password, or fail to in some way."""
        self.got.append((password, owner))
        return self._end(how, password, owner)

    @tool(**WRITE)
    def store_in_thread(self, password: Secret, owner: Person, how: str = "well") -> dict[str, Any]:
        """The same, in a thread."""
        self.got.append((password, owner))
        return self._end(how, password, owner)

    def _end(self, how: str, password: str, owner: str) -> dict[str, Any]:
        logging.getLogger("vault").warning("storing %r for %s", password, owner)
        match how:
            case "raise":
                raise RuntimeError(f"upstream said: password={password!r} of {owner} is too short")
            case "chain":
                try:
                    raise ConnectionError(f"POST https://vault/?owner={owner}&p={password}")
                except ConnectionError as error:
                    raise ValueError("it broke") from error
            case "no_effect":
                raise NoEffect(f"{owner} has used {password} before")
            case "garbage":
                return cast("dict[str, Any]", [password, owner])
            case _:
                return {"stored": True}

    @tool(
        **WRITE,
        semantics=[{"holds": "args.password != args.owner", "message": "a password is not a name"}],
        probe={
            "read": {"tool": "test.find", "arguments": {"owner": "=args.owner"}},
            "committed": "state.found",
        },
    )
    async def store_probed(self, password: Secret, owner: Person) -> dict[str, Any]:
        """Store a password and lose the answer."""
        raise RuntimeError(f"lost {password}")

    @tool(effect=Effect.READ_ONLY, max_retries=0)
    async def find(self, owner: str) -> dict[str, Any]:
        """Look for somebody; the argument is not marked here."""
        raise RuntimeError(f"no index for {owner}")


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure(stream, "json", "debug")
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)
    logging.captureWarnings(False)


async def outside(gateway: Gateway, seen: Seen, logged: io.StringIO) -> str:
    """Everything an outsider could see."""
    spans = [(span.name, said(span), span.status.description, span.events) for span in seen.spans]
    whole = seen.metrics.collect() if seen.metrics else []
    return "\n".join([logged.getvalue(), repr(spans), repr(whole), (await gateway.metrics(ANA)).decode()])


def clean(text: str) -> bool:
    return not any(canary in text for canary in CANARIES)


@requirement("CON-6", "LIF-5")
@pytest.mark.parametrize("name", ["store", "store_in_thread"])
@pytest.mark.parametrize("how", ["well", "raise", "chain", "no_effect", "garbage"])
async def test_a_marked_argument_comes_out_nowhere_however_the_tool_fails(
    open_gateway: Open, seen: Seen, logged: io.StringIO, how: str, name: str
) -> None:
    vault = Vault()
    async with open_gateway(vault, adapt=seen.adapt) as gateway:
        arguments = {"password": SECRET, "owner": PERSON, "how": how}
        answer = await gateway.call(f"test.{name}", arguments, key="k", principal=ANA)
        everything = await outside(gateway, seen, logged)
    assert vault.got == [(SECRET, PERSON)]
    assert "vault" in logged.getvalue()
    assert "[secret]" in logged.getvalue()
    assert clean(everything), everything
    assert clean(answer.to_json().decode())


@requirement("CON-6")
@pytest.mark.parametrize(
    "arguments",
    [
        {"password": [SECRET], "owner": PERSON},
        {"password": {"is": SECRET}, "owner": [PERSON]},
        {"password": SECRET, "owner": PERSON, "how": 7},
        f'{{"password": "{SECRET}", "owner": "{PERSON}", "how": 7}}',
        f'{{"password": "{SECRET}", "owner": "{PERSON}"',
    ],
)
async def test_arguments_that_are_refused_are_not_shown_either(
    open_gateway: Open, seen: Seen, logged: io.StringIO, arguments: Any
) -> None:
    async with open_gateway(Vault(), adapt=seen.adapt) as gateway:
        answer = await gateway.call("test.store", arguments, key="k", principal=ANA)
        everything = await outside(gateway, seen, logged)
    assert answer.status is Status.REFUSED
    assert clean(everything), everything
    assert clean(answer.to_json().decode())


@requirement("CON-6")
async def test_a_check_that_repeats_what_it_was_given_is_not_believed(
    open_gateway: Open, seen: Seen, logged: io.StringIO
) -> None:
    def picky(args: Any) -> str | None:
        if args["owner"] == PERSON:
            raise RuntimeError(f"cannot look up {args['owner']}")
        return f"{args['password']} is too simple"

    @tool(**WRITE, checks=[picky])
    async def keep(password: Secret, owner: Person) -> str:
        """Keep a password."""
        return "kept"

    async with open_gateway(keep, adapt=seen.adapt) as gateway:
        for number, owner in enumerate((PERSON, "ada@example.org")):
            arguments = {"password": SECRET, "owner": owner}
            answer = await gateway.call("test.keep", arguments, key=f"k-{number}", principal=ANA)
            assert answer.status is Status.REFUSED
            assert clean(answer.to_json().decode())
        everything = await outside(gateway, seen, logged)
    assert clean(everything), everything


@requirement("CON-6")
async def test_what_a_reading_is_given_of_a_marked_argument_stays_marked(
    open_gateway: Open, seen: Seen, logged: io.StringIO
) -> None:
    arguments = {"password": SECRET, "owner": PERSON}
    async with open_gateway(Vault(), adapt=seen.adapt) as gateway:
        await gateway.call("test.store_probed", arguments, key="k", principal=ANA)
        await gateway.tidy()  # and so it does when the sweep asks later, with no call around it
        everything = await outside(gateway, seen, logged)
    assert logged.getvalue().count("no index for [pii]") >= 2
    assert clean(everything), everything


@requirement("CON-6", "AUT-6")
async def test_others_learn_nothing_of_a_call_that_is_not_theirs(open_gateway: Open, seen: Seen) -> None:
    ben = replace(ANA, user="ben")
    arguments = {"password": SECRET, "owner": PERSON, "how": "no_effect"}
    async with open_gateway(Vault(), adapt=seen.adapt, config=PEOPLE) as gateway:
        mine = await gateway.call("test.store", arguments, key="k", principal=ANA)
        theirs = await gateway.call("test.store", {**arguments, "password": "other"}, key="k", principal=ben)
        assert await gateway.find(ben, mine.call_id) is None
        for_the_operator = await gateway.find(OLGA, mine.call_id)
    assert for_the_operator is not None
    assert clean(for_the_operator.to_json().decode())
    assert SECRET not in theirs.to_json().decode()


@requirement("CON-6", "AUT-1")
async def test_credentials_of_requests_and_of_the_configuration_are_in_no_log_or_error(
    tmp_path: Any, seen: Seen, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLGAS_SECRET", SECRET)
    config = {"auth": {"people": {"olga": {"roles": ["operator"], "approver_secret": "${OLGAS_SECRET}"}}}}
    async with opened("sqlite", tmp_path, Vault(), adapt=seen.adapt, config=config) as gateway:
        client = Client(build(gateway), {"host": "127.0.0.1:8080", "x-holdfast-user": "olga"})
        answers = [
            await client.get("/v1/tools", authorization=f"Bearer hf_abcd_{SECRET}"),
            await client.get("/v1/tools", **{"x-holdfast-approver-secret": f"{SECRET}-wrong"}),
            await client.get(f"/v1/calls/hf_abcd_{SECRET}"),
            await client.get(f"/v1/tools?access_token={SECRET}"),
            await client.post("/v1/calls", {"tool": "test.store", "password": SECRET}),
            await client.post("/v1/calls", {"tool": "test.store", "arguments": {"password": [SECRET]}}),
        ]
        everything = await outside(gateway, seen, logged)
    told = b"".join(answer.body for answer in answers[:2] + answers[3:]).decode()
    assert clean(told), told
    assert clean(everything), everything
