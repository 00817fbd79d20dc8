"""Are lines, events and numbers read as they are, however they arrive?"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.upstreams.mcp import wire
from holdfast.upstreams.mcp.backoff import Backoff
from holdfast.upstreams.mcp.errors import Garbage
from holdfast.upstreams.mcp.lines import Lines
from holdfast.upstreams.mcp.sse import Event, Events

STREAM = (
    b"event: endpoint\r\ndata: /messages\r\n\r\n"
    b": ping\n\nid: 7\nretry: 250\ndata: one\ndata: two\n\n"
    b"data:bare\r\revent: other\rdata: {}\r\r"
)
EVENTS = [
    Event("endpoint", b"/messages"),
    Event("message", b"one\ntwo"),
    Event("message", b"bare"),
    Event("other", b"{}"),
]


def pieces(raw: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(raw)) for cut in cuts} | {0, len(raw)})
    return [raw[a:b] for a, b in pairwise(places)]


@given(st.lists(st.integers(0, len(STREAM))))
def test_events_are_the_same_however_a_stream_is_cut(cuts: list[int]) -> None:
    events = Events()
    assert [event for piece in pieces(STREAM, cuts) for event in events.feed(piece)] == EVENTS
    assert (events.last_id, events.retry_ms) == ("7", 250)


@pytest.mark.parametrize("raw", [b"data: " + b"x" * 200, b"data: xxxxxxxxxxxxxxxx\n" * 20])
def test_an_event_beyond_the_limit_is_refused(raw: bytes) -> None:
    with pytest.raises(Garbage, match="more than 100 bytes"):
        list(Events(100).feed(raw))


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0, 300)))
def test_lines_are_the_same_however_a_stream_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    raw, most = b"".join(part + b"\n" for part in parts), 20
    lines = Lines(most)
    got = [line for piece in pieces(raw, cuts) for line in lines.feed(piece)]
    wanted = raw.split(b"\n")[:-1]
    assert got == [line for line in wanted if line.strip() and len(line) <= most]
    assert lines.overlong == len([line for line in wanted if len(line) > most])


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc"), JSON))
def test_what_is_written_is_read_exactly(message: dict[str, object]) -> None:
    assert wire.decoded(wire.encoded(message)) == message


@pytest.mark.parametrize(
    "raw", [b'{"n": NaN, "m": 1234567890123456789012}', b"Infinity", b"[" * 100_000, b""]
)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # whatever the reader says
        wire.decoded(raw)


def test_waits_grow_up_to_the_longest() -> None:
    backoff = Backoff(jitter=0.0)
    assert [backoff.pause(n) for n in (1, 2, 3, 9, 1000)] == [0.2, 0.4, 0.8, 30.0, 30.0]
    assert 0.15 <= Backoff().pause(1) <= 0.25
