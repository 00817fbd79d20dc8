"""Does the page of a call show the session it was about to those who may see it, and end it for them?"""

from pathlib import Path

from holdfast import Principal
from holdfast.model.upstream_session import SessionState
from holdfast.servers.app import build
from tests.console.office import harmless
from tests.console.visitor import Visitor, text
from tests.requirements import requirement
from tests.upstream_sessions.world import World, opened

PEOPLE = {"ada": {"trust": 90}, "bob": {"trust": 90}, "olga": {"roles": ["operator"]}}
CONFIG = {"auth": {"mode": "local", "people": PEOPLE}}


async def visitor(world: World, name: str) -> Visitor:
    found = Visitor(build(world.gateway))
    await found.sign_in(name)
    return found


def named(world: World, name: str) -> Principal:
    return world.gateway.identity.authenticate({"x-holdfast-user": name})


@requirement("EXE-8", "PPL-2")
async def test_the_page_of_a_call_shows_its_session_and_rolls_it_back(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path, config=CONFIG) as world:
        ada = named(world, "ada")
        begun = await world.call("begin", "begin", by=ada)
        tx = begun.data["tx"]
        added = await world.call("add", "one", by=ada, tx=tx, name="tea", amount=3)
        seen = await visitor(world, "ada")
        page = await seen.get(f"/calls/{added.call_id}")
        assert page.status == 200
        assert harmless(page)
        assert "Its session at till open" in text(page)
        assert "undone by till.remove" in text(page)
        assert b"transaction-1" not in page.body
        answer = await seen.post(f"/calls/{added.call_id}/rollback")
        assert answer.headers["location"] == f"/calls/{added.call_id}?done=rolled_back"
        after = text(await seen.get(answer.headers["location"]))
        assert "Rolled back. Nothing of that session is left." in after
        assert "rolled back with session" in after
        assert await world.state(tx) is SessionState.ROLLED_BACK
        assert world.till.open == {}


@requirement("EXE-8", "AUT-6")
async def test_others_neither_see_nor_end_it(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path, config=CONFIG) as world:
        begun = await world.call("begin", "begin", by=named(world, "ada"))
        bob, olga = await visitor(world, "bob"), await visitor(world, "olga")
        assert (await bob.get(f"/calls/{begun.call_id}")).status == 404
        assert (await bob.post(f"/calls/{begun.call_id}/rollback")).status == 404
        assert "Its session at till" in text(await olga.get(f"/calls/{begun.call_id}"))
        assert world.till.open
