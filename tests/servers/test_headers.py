"""What do the headers of a request say about the call in its body?"""

import pytest
from starlette.datastructures import Headers

from holdfast.model.trail import Parent
from holdfast.servers.headers import completed, disagreements, trace
from tests.requirements import requirement

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@requirement("LIF-4", "TEL-1")
@pytest.mark.parametrize("version", ["00", "cc"])
@pytest.mark.parametrize("flags", ["00", "01", "02", "03"])
def test_a_traceparent_names_the_trace_and_the_span_it_was_made_in(version: str, flags: str) -> None:
    told = trace(Headers({"traceparent": f"{version}-{TRACE}-{PARENT}-{flags}"}))
    assert told == (TRACE, Parent(PARENT, flags in ("01", "03")))


@requirement("TEL-1")
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (["a=1,b=2"], "a=1,b=2"),
        (["a=1", " b=2 , "], "a=1,b=2"),
        ([""], None),
        (["no equals sign"], None),
        (["a=1,B=2"], None),
        (["a=" + "x" * 600], None),
    ],
)
def test_a_tracestate_is_passed_on_as_it_came_or_not_at_all(sent: list[str], kept: str | None) -> None:
    raw = [(b"traceparent", f"00-{TRACE}-{PARENT}-01".encode())]
    told = trace(Headers(raw=[*raw, *((b"tracestate", value.encode()) for value in sent)]))
    assert told is not None
    assert told[1].state == kept


def test_a_later_version_of_traceparent_may_say_more() -> None:
    assert trace(Headers({"traceparent": f"01-{TRACE}-{PARENT}-01-more"})) == (TRACE, Parent(PARENT, True))


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE[:-1]}-{PARENT}-01",
    ],
)
def test_a_bad_traceparent_is_ignored(bad: str) -> None:
    assert trace(Headers({"traceparent": bad})) is None


@requirement("NAM-3")
@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("order-7", "order-7"),
        ('"order-7"', "order-7"),
        (r'"a\"b\\c"', r"a\"b\c".replace(r"\"", '"')),
        ('"half', '"half'),
        ('W/"weak"', 'W/"weak"'),
        ('"a", "b"', '"a", "b"'),
        ("", ""),
    ],
)
def test_a_value_in_quotes_is_meant_without_them(sent: str, meant: str) -> None:
    assert completed({}, Headers({"Idempotency-Key": sent})) == {"key": meant}


def test_headers_stand_for_members_the_body_does_not_have() -> None:
    headers = Headers({"Idempotency-Key": "k", "If-Match": '"v3"', "X-Holdfast-Session": "s"})
    assert completed({"tool": "a.b"}, headers) == {
        "tool": "a.b",
        "key": "k",
        "if_match": "v3",
        "session": "s",
    }


@requirement("NAM-3")
@pytest.mark.parametrize(
    ("body", "sent", "wrong"),
    [
        ({"key": "a"}, ["a"], []),
        ({"key": "a"}, ["b"], ["/key"]),
        ({}, ["a", "b"], ["/key"]),
        ({}, ["a", "a"], []),
        ({"key": "a"}, [], []),
        ({"key": ""}, ["a"], ["/key"]),
    ],
)
def test_header_and_body_must_name_the_same_key(
    body: dict[str, str], sent: list[str], wrong: list[str]
) -> None:
    headers = Headers(raw=[(b"idempotency-key", value.encode()) for value in sent])
    assert [fault.path for fault in disagreements(body, headers)] == wrong
