"""What do locks cost a tool that has none? Nothing: not one statement more. EXE-7."""

from pathlib import Path

import pytest

from holdfast.model.vocabulary import State
from holdfast.ports import Begun
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import Durable, durable
from tests.stores.calls import make_call, observed


def listen(store: Durable) -> list[str]:
    """Every statement that is said from now on by who writes."""
    said: list[str] = []
    if isinstance(store, SqliteStore):
        store._writer._connection.set_trace_callback(said.append)
        return said
    for lane in store._parts[2]._lanes if store._parts else ():
        if lane._connection is not None:
            lane._connection.add_query_logger(lambda record: said.append(record.query))
    return said


WRITES = {
    "sqlite": [
        ["BEGIN IMMEDIATE", "INSERT INTO operation", "INSERT INTO record", "COMMIT"],
        ["BEGIN IMMEDIATE", "UPDATE operation", "INSERT INTO record", "COMMIT"],
    ],
    "postgres": [["SELECT batch("], ["SELECT batch("]],
}
"""What a claim and an outcome are written with."""


@requirement("EXE-7", "PPL-6")
@pytest.mark.parametrize("store", list(WRITES), indirect=True)
async def test_a_tool_without_marks_is_claimed_and_finished_as_ever(store: str, tmp_path: Path) -> None:
    async with durable(store, tmp_path, clock := ManualClock()) as kept:

        async def lived(key: str) -> tuple[list[str], list[str]]:
            call = make_call(clock, key)
            said.clear()
            begun = await kept.ledger.begin(call)
            first = list(said)
            assert isinstance(begun, Begun)
            call.operation = begun.operation
            said.clear()
            assert await kept.ledger.finish(call, observed(call), State.COMMITTED)
            return first, list(said)

        said: list[str] = []
        for number in range(3):
            await lived(f"before-{number}")
        said = listen(kept)
        for spoken, wanted in zip(await lived("k"), WRITES[store], strict=True):
            words = [" ".join(text.split()) for text in spoken if not text.startswith("PRAGMA")]
            assert [text[: len(start)] for text, start in zip(words, wanted, strict=True)] == wanted, words
