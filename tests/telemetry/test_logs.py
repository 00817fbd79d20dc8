"""Is a line of the log one JSON object that says whose call it is about?"""

import io
import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from holdfast import Effect, tool
from holdfast.telemetry.logs import Format, configure
from tests.requirements import requirement
from tests.telemetry.world import ANA, Open

log = logging.getLogger("tests.telemetry")

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure(stream, "json", "info")
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)
    logging.captureWarnings(False)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@tool(effect=Effect.READ_ONLY)
async def mutter(thing: str) -> str:
    """Say something to the log."""
    log.info("looking at %s", thing)
    return thing


@tool(effect=Effect.READ_ONLY)
def grumble(thing: str) -> str:
    """Say something to the log, from a thread."""
    log.warning("looking at %s\nand at more", thing)
    return thing


@requirement("TEL-6")
@pytest.mark.parametrize("name", ["mutter", "grumble"])
async def test_whatever_is_logged_on_the_way_of_a_call_names_it_and_its_trace(
    open_gateway: Open, logged: io.StringIO, name: str
) -> None:
    async with open_gateway(mutter, grumble) as gateway:
        log.info("before")
        done = await gateway.call(f"test.{name}", {"thing": "a"}, principal=ANA)
        log.info("after")
    before, within, after = (line for line in lines(logged) if line["logger"] == "tests.telemetry")
    assert set(before) == set(after) == {"ts", "level", "logger", "msg"}
    assert (within["call_id"], within["trace_id"]) == (done.call_id, done.trace_id)
    assert within["msg"].startswith("looking at a")
    assert datetime.fromisoformat(within["ts"]).utcoffset() is not None


@requirement("TEL-6")
def test_an_exception_is_part_of_its_line(logged: io.StringIO) -> None:
    try:
        raise ValueError("password=hunter2 \ud800")
    except ValueError:
        log.exception("it broke")
    (line,) = lines(logged)
    assert (line["level"], line["msg"]) == ("error", "it broke")
    assert line["exc"].endswith("ValueError: password=[credential] ?")


@requirement("TEL-6")
@pytest.mark.parametrize(
    ("chosen", "terminal", "is_json"),
    [("json", True, True), ("text", False, False), (None, True, False), (None, False, True)],
)
def test_people_get_text_and_machines_get_json_unless_somebody_chose(
    logged: io.StringIO, chosen: Format | None, terminal: bool, is_json: bool
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    stream = Terminal()
    configure(stream, chosen, "warning")
    log.info("too quiet")
    log.warning("hello %s", "there")
    (line,) = stream.getvalue().splitlines()
    if is_json:
        assert json.loads(line)["msg"] == "hello there"
    else:
        assert line.endswith(" warning tests.telemetry: hello there")
