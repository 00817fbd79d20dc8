"""Can one tenant read anything of another's, or even learn that it is there?

Every cell of the matrix is asked for an id of the other tenant's and for one that nobody has, in every form:
the answers are the same, byte for byte, once the id itself and what is random are taken out.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import orjson
import pytest

from tests.requirements import requirement
from tests.servers.cells import CELLS, DOORS, NOT_THERE, THINGS, Cell
from tests.servers.house import SECRETS
from tests.servers.tenants import Said, Street, street
from tests.stored import DURABLE

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda id: id,
    "cut short": lambda id: id[:-1],
    "too long": lambda id: f"{id}x",
    "very long": lambda id: id + "x" * 1000,
    "in capitals": lambda id: id.upper(),
    "after a space": lambda id: f" {id}",
    "in quotes": lambda id: f'"{id}"',
    "as a path": lambda id: f"../{id}",
    "as a pattern": lambda id: f"{id}%",
    "as SQL": lambda id: f"{id}' OR '1'='1",
}
ISSUED = re.compile(rb'"plan_token":"[^"]*"')
"""A token made for the asker: it holds the second it was made in."""
RANDOM = tuple(
    re.compile(pattern)
    for pattern in (
        rb"call_[0-9a-f]{28}",
        rb"(?<![0-9a-f])[0-9a-f]{24,}(?![0-9a-f])",
        rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)",
        rb'"latency_ms":[0-9.e-]+',
        rb"fresh-\d{6}",
        rb"pd_[0-9A-Za-z]+",
        rb'"incident":"[0-9a-f]+"',
    )
)
"""What differs between two answers to the same question."""


@pytest.fixture(params=[*DURABLE, "the general way"])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Street]:
    short = request.param in DURABLE
    async with street(request.param if short else "sqlite", tmp_path, short=short) as made:
        yield made


def plain(said: Said, id: str) -> Said:
    """An answer without the id it was asked for, and without what is random."""
    body = ISSUED.sub(b"<issued>", said.body)
    for form in dict.fromkeys((orjson.dumps(id)[1:-1], id.encode(), id.strip().strip('"').encode())):
        if form:
            body = body.replace(form, b"<id>")
    for shown in (64, 80, 128, 200):  # as much of a long id as messages show
        body = body.replace(orjson.dumps(id[:shown])[1:-1], b"<id>")
    for pattern in RANDOM:
        body = pattern.sub(b"<random>", body)
    return Said(said.status, body)


def secrets_in(said: Said, street: Street) -> Iterator[str]:
    for secret in (*SECRETS, *street.ids.values()):
        if re.search(rb"%b(?!\d)" % re.escape(secret.encode()), said.body):  # record 40 is not record 4
            yield secret


async def faults_of(cell: Cell, street: Street) -> AsyncIterator[str]:
    asks, theirs, nobodys = street.of(cell.by), street.ids[cell.id], street.others[cell.id]
    for name, form in FORMS.items():
        there = plain(await cell.ask(asks, form(theirs)), form(theirs))
        nowhere = plain(await cell.ask(asks, form(nobodys)), form(nobodys))
        if there != nowhere:
            yield f"{cell} {name}: {there} is not {nowhere}"
        if there.status >= 500:
            yield f"{cell} {name}: {there}"
        for secret in secrets_in(there, street):
            yield f"{cell} {name}: tells {secret!r}: {there}"
    empty = await cell.ask(asks, "")
    if empty.status >= 500 or any(secrets_in(empty, street)):
        yield f"{cell}, empty: {empty}"


@requirement("AUT-6", "NAM-3")
@pytest.mark.parametrize("thing", THINGS)
async def test_what_another_tenant_has_is_answered_like_what_nobody_has(two: Street, thing: str) -> None:
    cells = [cell for cell in CELLS if cell.thing == thing]
    faults = [fault for cell in cells for fault in [f async for f in faults_of(cell, two)]]
    assert not faults, "\n".join(faults)
    for cell in cells:  # the same question, by its owner: it is there, and nobody has touched it
        if cell.owner is not None:
            theirs, nobodys = two.ids[cell.id], two.others[cell.id]
            own = plain(await cell.ask(two.of(cell.owner), theirs), theirs)
            assert own != plain(await cell.ask(two.of(cell.owner), nobodys), nobodys), str(cell)


@requirement("AUT-6")
async def test_what_lists_shows_nothing_of_another_tenant(two: Street) -> None:
    await two.of("norman").rest("POST", "/v1/halts", {"target": "nora/person", "note": "aurora"})
    for by in ("sid", "sonja"):
        caller = two.of(by)
        lists = [
            await caller.rest("GET", path)
            for path in ("/v1/tools", "/v1/approvals", "/v1/audit", "/v1/halts", "/metrics")
        ]
        lists.append(await caller.rpc("tools.list", {}))
        lists.append(await caller.mcp("tools/list", {}))
        lists.append(await caller.old_mcp("tools/list", {}))
        for said in lists:
            assert said.status in (200, 403)
            assert list(secrets_in(said, two)) == [], said


@requirement("AUT-6")
async def test_an_operator_settles_cancels_and_answers_nothing_of_another_tenant(two: Street) -> None:
    sonja, norman = two.of("sonja"), two.of("norman")
    settlement = {"outcome": "no-effect", "note": "n"}
    await sonja.rest("POST", f"/v1/calls/{two.ids['unknown call']}/settle", settlement)
    await sonja.rest("POST", f"/v1/calls/{two.ids['held call']}/cancel", {})
    await sonja.rest("POST", f"/v1/calls/{two.ids['running call']}/cancel", {})
    await sonja.rest("POST", f"/v1/approvals/{two.ids['approval']}/decision", {"decision": "approve"})
    unknown = await norman.rest("GET", f"/v1/calls/{two.ids['unknown call']}")
    held = await norman.rest("GET", f"/v1/calls/{two.ids['held call']}")
    asked = await norman.rest("GET", f"/v1/approvals/{two.ids['approval']}")
    assert (unknown.json()["status"], held.json()["status"]) == ("unknown", "held")
    assert (asked.json()["answer"], asked.json()["votes"]) == ("PENDING", [])


def test_every_thing_is_asked_for_through_every_door_or_has_a_reason() -> None:
    asked = {(cell.thing, cell.door) for cell in CELLS}
    wanted = {(thing, door) for thing in THINGS for door in DOORS}
    assert wanted <= asked | NOT_THERE.keys()
    assert not {(thing, door) for thing, door in NOT_THERE if (thing, door) in asked and thing != "approval"}
