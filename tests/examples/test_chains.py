"""Do the chains of `examples/chains` end as their README says, each way they can?"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import load
from holdfast.gateway import Gateway
from holdfast.gateway.chains import Shown
from holdfast.gateway.wiring import connected
from holdfast.model.run import Inversion, RunState, StepState
from holdfast.model.view import Wanted
from holdfast.stores.memory import MemoryStore
from holdfast.system import RandomIds, SystemClock
from tests.docs.pages import ROOT
from tests.requirements import requirement

FOLDER = ROOT / "examples" / "chains"


@pytest.fixture
def shop_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_FILE", str(tmp_path / "shop.json"))
    monkeypatch.setenv("ARCHIVE_S", "600")
    return tmp_path / "shop.json"


@contextmanager
def unimported() -> Iterator[None]:
    """Another example has a `shop` too."""
    path, before = list(sys.path), sys.modules.pop("shop", None)
    try:
        yield
    finally:
        sys.path[:] = path
        sys.modules.pop("shop", None)
        if before is not None:
            sys.modules["shop"] = before


@asynccontextmanager
async def example() -> AsyncIterator[Gateway]:
    """The example's own configuration, on a store that ends with the test."""
    with unimported():
        config, clock = load(FOLDER / "holdfast.yaml"), SystemClock()
        store, upstreams = MemoryStore(clock), connected(config)
        gateway = Gateway.assemble(config, store, upstreams, clock=clock, ids=RandomIds())
        await gateway.prepare()
        try:
            yield gateway.start()
        finally:
            await gateway.close()


async def ran(gateway: Gateway, chain: str, given: dict[str, Any]) -> Shown:
    by = gateway.identity.at_terminal()
    begun = await gateway.chains.start(by, gateway.chains.named(chain), given, f"{chain}-1")
    return await seen(gateway, begun.id)


async def seen(gateway: Gateway, run_id: str) -> Shown:
    by = gateway.identity.at_terminal()
    await gateway.chains.wait(by, run_id, 30.0)
    return await gateway.chains.look(by, run_id)


def named(shown: Shown, state: StepState) -> list[str]:
    return [line.name for line in shown.lines if line.state is state]


@requirement("CHN-1")
@pytest.mark.parametrize("chain", ["order", "research", "migration"])
async def test_nothing_keeps_an_example_from_being_run(chain: str, shop_file: Path) -> None:
    async with example() as gateway:
        assert gateway.chains.check(gateway.identity.at_terminal("ana"), gateway.chains.named(chain)).ok


@requirement("CHN-2", "SAG-1")
async def test_a_lamp_is_ordered_charged_shipped_and_told(shop_file: Path) -> None:
    async with example() as gateway:
        shown = await ran(gateway, "order", {"item": "lamp"})
    assert (shown.run.state, shown.run.output) == (RunState.COMPLETED, {"order": "o-1", "parcel": "p-o-1"})
    books = json.loads(shop_file.read_text())
    assert (books["orders"], books["charges"]) == ({"o-1": "lamp"}, {"c-o-1": 4900})
    assert (books["parcels"], books["mails"]) == ({"p-o-1": "lamp"}, ["o-1 is on its way"])


@requirement("SAG-1", "CHN-5")
async def test_an_anvil_that_nobody_carries_is_taken_back_in_reverse_order(shop_file: Path) -> None:
    async with example() as gateway:
        shown = await ran(gateway, "order", {"item": "anvil"})
    assert shown.run.state is RunState.COMPENSATED
    assert named(shown, StepState.DONE) == ["order", "charge", "charge~undo", "order~undo"]
    assert named(shown, StepState.FAILED) == ["ship"]
    books = json.loads(shop_file.read_text())
    assert (books["orders"], books["charges"], books["parcels"], books["mails"]) == ({}, {}, {}, [])


@requirement("CHN-3")
async def test_two_answers_are_enough_and_the_archive_is_not_waited_for(shop_file: Path) -> None:
    async with example() as gateway:
        shown = await ran(gateway, "research", {"topic": "knots"})
        await gateway.tidy()
        calls = await gateway.views.calls(gateway.identity.at_terminal("ana"), Wanted(limit=10))
    ended = {row.tool: row.code or row.status for row in calls.rows}
    assert ended == {"shop.web": "done", "shop.papers": "done", "shop.archive": "CANCELLED"}
    assert shown.run.state is RunState.COMPLETED
    assert shown.run.output == {"titles": ["knots, a page", "On knots"]}


@requirement("CHN-3")
async def test_where_one_fails_the_archive_is_waited_for(
    shop_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVE_S", "0")
    async with example() as gateway:
        shown = await ran(gateway, "research", {"topic": "rumour"})
    assert shown.run.output == {"titles": ["rumour, a page", "rumour, a box of letters"]}


async def approve(gateway: Gateway, shown: Shown) -> None:
    """Somebody with the role says yes, and the gateway notices."""
    assert shown.run.waits_on, shown.run.waits_for
    await gateway.decide(gateway.identity.at_terminal("ana"), shown.run.waits_on, True)
    await gateway.tidy()


@requirement("CHN-7", "SAG-2")
@pytest.mark.parametrize(
    ("to", "state", "schema"),
    [(2, RunState.COMPLETED, 2), (13, RunState.COMPENSATED, 1)],
    ids=["good", "bad"],
)
async def test_a_migration_waits_for_an_operator_and_is_put_back_where_it_does_not_answer(
    shop_file: Path, to: int, state: RunState, schema: int
) -> None:
    async with example() as gateway:
        held = await ran(gateway, "migration", {"to": to})
        assert held.run.waits_for.startswith("approval")
        assert named(held, StepState.DONE) == ["before", "copy"]
        assert json.loads(shop_file.read_text())["schema"] == 1
        await approve(gateway, held)
        over = await asyncio.wait_for(_over(gateway, held.run.id), 30)
    assert over.run.state is state
    books = json.loads(shop_file.read_text())
    assert (books["schema"], books["copies"]) == (schema, [1] if schema == 2 else [])


async def _over(gateway: Gateway, run_id: str) -> Shown:
    while not (shown := await seen(gateway, run_id)).run.state.over:
        await asyncio.sleep(0)  # a store in memory never makes anybody wait
        await gateway.tidy()
    return shown


@requirement("SAG-4")
@pytest.mark.parametrize(
    ("chain", "given"), [("order", {"item": "lamp"}), ("migration", {"to": 2})], ids=["order", "migration"]
)
async def test_their_undoings_are_shown_to_undo_and_nothing_is_sold_by_that(
    shop_file: Path, chain: str, given: dict[str, Any]
) -> None:
    async with example() as gateway:
        ana = gateway.identity.at_terminal("ana")
        report = await gateway.chains.inversions.prove(ana, gateway.chains.named(chain), given)
    assert report.ok
    assert {one.how for one in report.tried} == {Inversion.SHOWN}
    assert not shop_file.exists()
