"""A recovery that is cut short anywhere: does it do no harm, and does the next one end it?"""

from collections.abc import AsyncIterator
from itertools import count

from holdfast.gateway import engines
from holdfast.model.errors import Code, StoreError
from holdfast.model.observation import Status
from holdfast.stores.backup.snapshot import Row, Snapshot, Values
from tests.lives.tools import effects
from tests.lives.town import ANA, BEN, ZOE, Town
from tests.requirements import requirement


class CutShort:
    """A source that breaks after so many looks at it."""

    def __init__(self, whole: Snapshot, looks: int) -> None:
        self._whole = whole
        self._left = looks
        self.engine, self.place = whole.engine, whole.place

    async def shape(self) -> int:
        return await self._whole.shape()

    async def columns(self, table: str) -> list[str]:
        self._look()
        return await self._whole.columns(table)

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        self._look()
        return await self._whole.all(statement, values)

    async def stream(self, statement: str, values: Values = ()) -> AsyncIterator[list[Row]]:
        async for batch in self._whole.stream(statement, values):
            for row in batch:
                self._look()
                yield [row]

    async def close(self) -> None:
        await self._whole.close()

    def _look(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise StoreError("the disk is pulled")


@requirement("PPL-5")
async def test_a_recovery_that_breaks_off_anywhere_is_ended_by_the_next(home: Town) -> None:
    await home.call("morning")
    async with home.open() as gateway:
        await gateway.call("town.grave", {"name": "grave"}, key="grave", principal=ANA)
    noon = await home.back_up()
    async with home.open() as gateway:
        [asked] = await gateway.approvals(BEN)
        await gateway.decide(BEN, asked.id, approve=True)
        for key, tool, who in (("grave", "grave", ANA), ("lunch", "plain", ANA), ("hers", "plain", ZOE)):
            await gateway.call(f"town.{tool}", {"name": key}, key=key, principal=who)
    restored = await home.restore(noon)
    broken = 0
    async with home.open() as gateway:
        assert gateway._lives is not None
        for looks in count(0, 3):
            kept = await engines.kept(home.config, 2)
            assert kept is not None
            source = CutShort(await kept(), looks)
            try:
                await gateway._lives.merge(source, restored.life.since)
                break
            except StoreError as error:
                assert "the disk is pulled" in str(error)  # noqa: PT017
                broken += 1
            finally:
                await source.close()
            late = await gateway.call("town.plain", {"name": "late"}, key="late", principal=ANA)
            assert late.code is Code.TOOL_UNAVAILABLE
    assert broken > 10
    recovered = await home.recover()
    assert recovered.operations == 0, "it was all there already"
    async with home.open() as gateway:
        for key, tool, who in (("grave", "grave", ANA), ("lunch", "plain", ANA), ("hers", "plain", ZOE)):
            again = await gateway.call(f"town.{tool}", {"name": key}, key=key, principal=who)
            assert (again.status, again.replayed) == (Status.DONE, True)
        [account] = await gateway._ports.ledger.budgets("default")
        assert (account.used.calls, account.reserved.calls) == (3, 0)
    assert effects() == {"morning": 1, "grave": 1, "lunch": 1, "hers": 1}
    report = await home.verify()
    assert report.ok, report.lines()
