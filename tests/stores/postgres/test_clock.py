"""Is the time that counts the database's, whatever this machine's clock says?"""

import itertools

import asyncpg
import pytest

from holdfast.stores.postgres.clock import DatabaseBoot, DatabaseClock
from holdfast.testing import ManualClock
from tests.requirements import requirement


async def asked(url: str) -> float:
    connection = await asyncpg.connect(url)
    try:
        return float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
    finally:
        await connection.close()


@requirement("IDM-8")
async def test_it_tells_the_servers_time_on_a_machine_whose_clock_is_years_behind(url: str) -> None:
    machine = ManualClock(start=86_400.0)
    clock = DatabaseClock(machine)
    connection = await asyncpg.connect(url)
    before = await asked(url)
    await clock.measure(connection)
    assert before <= clock.now() <= await asked(url)
    assert DatabaseBoot(clock).now() == clock.now()
    await connection.close()


@requirement("IDM-8")
async def test_between_two_measurements_it_goes_by_what_passes_here_and_no_jump_moves_it(url: str) -> None:
    machine = ManualClock()
    clock = DatabaseClock(machine)
    connection = await asyncpg.connect(url)
    await clock.measure(connection)
    start = clock.now()
    machine.jump(86_400.0)
    assert clock.now() == start
    await machine.advance(7.0)
    assert clock.now() == pytest.approx(start + 7.0)
    assert clock.monotonic() == machine.monotonic()
    await connection.close()


@requirement("IDM-8")
async def test_the_answer_is_taken_to_come_from_the_middle_of_the_wait(url: str) -> None:
    class Steps(ManualClock):
        """A second passes from one look to the next."""

        looks = itertools.count()

        def monotonic(self) -> float:
            return float(next(self.looks))

    clock = DatabaseClock(Steps())
    connection = await asyncpg.connect(url)
    before = await asked(url)
    await clock.measure(connection)  # looks at 0 and at 1: the server looked at 0.5
    told = clock.now()  # looks at 2
    assert before + 1.5 <= told <= await asked(url) + 1.5
    await connection.close()


@requirement("IDM-8")
async def test_a_server_whose_clock_was_set_is_told_of(url: str, caplog: pytest.LogCaptureFixture) -> None:
    machine = ManualClock()
    clock = DatabaseClock(machine)
    connection = await asyncpg.connect(url)
    await clock.measure(connection)
    await clock.measure(connection)
    assert caplog.text == ""
    await machine.advance(60.0)  # a minute passed here, and none there
    await clock.measure(connection)
    assert "the database's clock moved by -60" in caplog.text
    assert clock.now() <= await asked(url)
    await connection.close()


def test_nobody_is_told_a_time_before_the_server_was_asked() -> None:
    with pytest.raises(RuntimeError, match="not asked"):
        DatabaseClock(ManualClock()).now()
