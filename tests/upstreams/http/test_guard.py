"""Is a connection made to exactly what was judged, and what is said when it is not?"""

import ssl
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from holdfast.model.egress.host import Number
from holdfast.model.egress.rules import Rules
from holdfast.upstreams.http.errors import Barred, Unreachable
from holdfast.upstreams.http.guard import Barring, Guard
from holdfast.upstreams.http.outgoing import NotFetched, Outgoing
from tests.egress.canary import canary
from tests.requirements import requirement
from tests.upstreams.http.raw import JSON_HEAD, Raw, Visitor
from tests.upstreams.http.test_tls import ELSEWHERE, Authority, authority

__all__ = ["authority"]

PUBLIC, OTHER, INSIDE = "93.184.216.34", "2606:2800:21f:cb07::1", "127.0.0.1"
HOUR_S = 3600.0


class Names:
    """A name server that obeys the test: each question gets the next answer, and the last one again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[Number]:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [ip_address(one) for one in answer]


def places(found: Sequence[tuple[object, ...]]) -> list[str]:
    return [str(place[-1][0]) for place in found]  # type: ignore[index]


@requirement("POL-6")
async def test_a_name_that_turns_inside_between_two_looks_leads_nowhere() -> None:
    names = Names([PUBLIC, OTHER], [INSIDE])
    guard = Guard(Rules(), resolve=names)
    assert places(await guard.found("evil.example", 80)) == [PUBLIC, OTHER]
    assert names.asked == ["evil.example"], "who connects looks once, and has numbers then"
    with pytest.raises(Barred):
        await guard.found("evil.example", 80)


@requirement("POL-6")
@pytest.mark.parametrize(
    "answer", [[INSIDE], [PUBLIC, INSIDE], ["169.254.169.254"], ["::ffff:127.0.0.1"], ["::"]]
)
async def test_a_name_of_the_configuration_that_was_public_does_not_turn_inside(answer: list[str]) -> None:
    guard = Guard(
        Rules(written=("http://crm.example/mcp",)), resolve=Names([PUBLIC], [OTHER], answer, [PUBLIC])
    )
    for expected in (PUBLIC, OTHER):
        assert places(await guard.found("crm.example", 80)) == [expected]
    with pytest.raises(Barred):
        await guard.found("crm.example", 80)
    assert places(await guard.found("crm.example", 80)) == [PUBLIC]


@requirement("POL-6")
async def test_a_name_of_the_configuration_may_be_inside_from_the_start() -> None:
    guard = Guard(Rules(written=("http://crm.example/mcp",)), resolve=Names([INSIDE], [PUBLIC], ["10.0.0.1"]))
    assert places(await guard.found("crm.example", 80)) == [INSIDE]
    assert places(await guard.found("crm.example", 80)) == [PUBLIC]
    with pytest.raises(Barred):
        await guard.found("crm.example", 80)


@requirement("POL-6")
@pytest.mark.parametrize(
    "answer", [[INSIDE], ["::1"], ["0.0.0.0"], ["::ffff:127.0.0.1"], [INSIDE, PUBLIC], [PUBLIC, INSIDE]]
)
async def test_a_name_that_leads_to_this_machine_does_not_reach_it(answer: list[str]) -> None:
    with canary() as bird:
        outgoing = Outgoing(Guard(Rules(), resolve=Names(answer)))
        with pytest.raises(NotFetched) as told:
            await outgoing.fetch(
                f"http://evil.example:{bird.port}/", purpose="keys", limit_bytes=10, deadline_s=HOUR_S
            )
        assert (told.value.barred, told.value.sent) == (True, False)
        assert bird.reached() == 0


@requirement("POL-6")
async def test_the_same_name_is_reached_where_that_address_is_listed() -> None:
    """So that the test above can fail."""
    with canary() as bird:
        outgoing = Outgoing(Guard(Rules(allow=(INSIDE,)), resolve=Names([INSIDE])))
        with pytest.raises(NotFetched, match="status 404"):
            await outgoing.fetch(
                f"http://evil.example:{bird.port}/", purpose="keys", limit_bytes=10, deadline_s=HOUR_S
            )
        assert bird.reached() == 1


@requirement("POL-6")
async def test_a_server_hears_the_name_and_is_connected_to_at_the_judged_address() -> None:
    heard: list[bytes] = []

    async def serve(visitor: Visitor) -> None:
        heard.append(await visitor.reader.readuntil(b"\r\n\r\n"))
        visitor.writer.write(JSON_HEAD + b"content-length: 2\r\n\r\n{}")

    names = Names([INSIDE], ["203.0.113.1"])
    async with Raw(serve).open() as there:
        outgoing = Outgoing(Guard(Rules(allow=("crm.example",)), resolve=names))
        url = f"http://crm.example:{there.port}/x"
        assert await outgoing.fetch(url, purpose="keys", limit_bytes=10, deadline_s=HOUR_S) == b"{}"
    assert names.asked == ["crm.example"]
    assert f"host: crm.example:{there.port}\r\n".encode() in heard[0]


@requirement("POL-6")
async def test_a_certificate_is_of_the_name_and_not_of_the_address(authority: Authority) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.reader.readuntil(b"\r\n\r\n")
        visitor.writer.write(JSON_HEAD + b"content-length: 2\r\n\r\n{}")

    async def fetched(context: ssl.SSLContext, name: str) -> bytes:
        async with Raw(serve).open(ssl=context) as there:
            guard = Guard(Rules(allow=(INSIDE,)), resolve=Names([INSIDE]))
            url = f"https://{name}:{there.port}/"
            return await Outgoing(guard, authority.trust).fetch(
                url, purpose="keys", limit_bytes=10, deadline_s=HOUR_S
            )

    assert await fetched(authority.server(ELSEWHERE), "elsewhere.example") == b"{}"
    with pytest.raises(NotFetched, match="certificate is not trusted") as told:
        await fetched(authority.server(ELSEWHERE), "crm.example")
    assert not told.value.sent


@requirement("POL-6")
@pytest.mark.parametrize("rules", [Rules("none"), Rules("listed"), Rules("listed", ("auth.example:443",))])
async def test_where_no_address_would_do_the_name_is_not_even_looked_up(rules: Rules) -> None:
    names = Names([PUBLIC])
    with pytest.raises(Barred):
        await Guard(rules, resolve=names).found("a-secret-in-a-name.example", 80)
    assert names.asked == []


@requirement("POL-6", "LIF-5")
async def test_the_log_says_all_and_the_error_no_address(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Barring] = []
    guard = Guard(Rules(), whose="upstreams.crm", resolve=Names(["10.1.2.3"]), barred=told.append)
    with pytest.raises(Barred) as raised:
        await guard.found("inner.example", 8080, "a sign-in")
    assert str(raised.value) == (
        "the egress rule 'public' does not let the gateway connect there; the log says why"
    )
    [one] = told
    assert (one.whose, one.purpose, one.host, one.port, one.mode, one.addresses) == (
        *("upstreams.crm", "a sign-in", "inner.example", 8080, "public"),
        ("10.1.2.3",),
    )
    assert "'inner.example' port 8080 (leads to 10.1.2.3) for a sign-in" in caplog.text
    assert "public addresses only, and this is private" in caplog.text


async def test_a_name_that_leads_nowhere_is_not_a_matter_of_rules() -> None:
    async def fails(host: str, port: int) -> list[Number]:
        raise OSError(1, "Name or service not known")

    for resolve in (fails, Names([])):
        outgoing = Outgoing(Guard(Rules(), resolve=resolve))
        with pytest.raises(NotFetched, match="cannot connect: ") as told:
            await outgoing.fetch("http://gone.example/", purpose="keys", limit_bytes=10, deadline_s=HOUR_S)
        assert (told.value.barred, told.value.sent) == (False, False)
    assert issubclass(Barred, Unreachable)


@pytest.mark.parametrize("limit", [10, 100_000])
async def test_an_answer_has_an_end(limit: int) -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.reader.readuntil(b"\r\n\r\n")
        visitor.writer.write(JSON_HEAD + b"transfer-encoding: chunked\r\n\r\n")
        while True:
            visitor.writer.write(b"400\r\n" + b"x" * 0x400 + b"\r\n")
            await visitor.writer.drain()

    async with Raw(serve).open() as there:
        url = f"http://{there.host}:{there.port}/"
        with pytest.raises(NotFetched, match=f"more than {limit} bytes"):
            await Outgoing(Guard(Rules(written=(url,)))).fetch(
                url, purpose="keys", limit_bytes=limit, deadline_s=HOUR_S
            )


async def test_a_redirect_comes_back_as_it_is() -> None:
    async def serve(visitor: Visitor) -> None:
        await visitor.reader.readuntil(b"\r\n\r\n")
        visitor.writer.write(b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")

    raw = Raw(serve)
    async with raw.open() as there:
        url = f"http://{there.host}:{there.port}/"
        outgoing = Outgoing(Guard(Rules(written=(url,))))
        reply = await outgoing.ask("GET", url, purpose="keys", limit_bytes=10, deadline_s=HOUR_S)
        assert (reply.status, reply.header("location"), reply.body) == (302, "/elsewhere", b"")
        with pytest.raises(NotFetched, match="status 302; no redirect is followed"):
            await outgoing.fetch(url, purpose="keys", limit_bytes=10, deadline_s=HOUR_S)
    assert len(raw.visitors) == 2


@pytest.mark.parametrize("url", ["ftp://a.example/", "http://", "http://[::1", "no url", "http://a\0b/"])
async def test_what_is_no_url_is_asked_of_nobody(url: str) -> None:
    names = Names([PUBLIC])
    with pytest.raises(NotFetched) as told:
        await Outgoing(Guard(Rules(), resolve=names)).fetch(
            url, purpose="keys", limit_bytes=10, deadline_s=HOUR_S
        )
    assert not told.value.sent
    assert names.asked == []


@requirement("LIF-5")
@pytest.mark.parametrize("answer", [[INSIDE], [INSIDE, "::1"]])
async def test_a_place_where_nobody_listens_is_told_without_its_address(answer: list[str]) -> None:
    with canary() as bird:
        closed = bird.port  # nobody listens there once it is gone
    url = f"http://crm.example:{closed}/"
    outgoing = Outgoing(Guard(Rules(written=(url,)), resolve=Names(answer)))
    with pytest.raises(NotFetched, match="cannot connect: ") as told:
        await outgoing.fetch(url, purpose="keys", limit_bytes=10, deadline_s=HOUR_S)
    assert not [one for one in (*answer, str(closed)) if one in str(told.value)]
