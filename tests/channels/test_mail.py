"""Do people get mail that is safe to read, from a gateway that lets no mail server hold it up?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import policy
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway.notices.letter import letter
from holdfast.gateway.notices.outcome import Again, Never, Sent
from holdfast.model import defaults
from holdfast.model.people import Alert, Notice
from tests.approvals.bank import BEN, CAT, Bank, pay
from tests.approvals.opening import House
from tests.channels.bench import BASE, told
from tests.channels.post import USER, Post
from tests.requirements import requirement
from tests.upstreams.http.test_tls import ELSEWHERE, HERE, Authority

HOUR_S = 3600.0


def mail(port: int, to: Any = ("ben@bank.example",), **said: Any) -> dict[str, Any]:
    settings = {"host": "127.0.0.1", "port": port, "tls": "none", "sender": "gate@bank.example"}
    receivers = to if isinstance(to, dict) else list(to)
    events = {"events": said.pop("events")} if "events" in said else {}
    return {"mail": {**settings, "to": receivers, **said}, **events}


def alert(number: int, at: float) -> Alert:
    return Alert(
        tenant="default", id=f"alr_{number}", kind="latency", subject=f"tool-{number}", text="it is slow",
        facts={"p99_ms": 7}, at=at, seen_at=at,
    )  # fmt: skip


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@requirement("APR-7")
async def test_a_question_comes_by_mail_over_tls_signed_in_and_leads_to_its_page(
    house: House, tmp_path: Path, authority: Authority
) -> None:
    safe = {"tls": "starttls", "ca": str(authority.file), "user": USER, "password": "${secret:mail}"}
    with Post().open(authority.server(HERE), sign_in=True) as post:
        tree = told(tmp_path, {"post": mail(post.port, **safe)})
        async with house.gateway(Bank(), config=tree) as gateway:
            held = await pay(gateway, note="rent", to="Mira Sand")
            assert held.approval is not None
            await gateway.notices.round()
            await gateway.notices.round()
            [state] = await gateway.notices.channels(BEN)
    [got] = post.letters
    assert (got.to, got.tls, got.user) == (["ben@bank.example"], True, USER)
    assert got.mail["Subject"] == "[holdfast] approve or deny: test.pay"
    assert (got.mail["From"], got.mail["To"]) == ("gate@bank.example", "ben@bank.example")
    assert got.mail.get_content_type() == "text/plain"
    assert "money leaves the bank" in got.text
    assert f"{BASE}/approvals/{held.approval.id}" in got.text
    assert "> note: rent" in got.text
    assert "Mira Sand" not in got.text
    assert (state.tally.sent, state.tally.waiting) == (1, 0)


@requirement("APR-7")
async def test_mail_goes_through_tls_from_the_first_byte_too(tmp_path: Path, authority: Authority) -> None:
    house = House("memory", tmp_path)
    with Post().open(authority.server(HERE), at_once=True) as post:
        tree = told(tmp_path, {"post": mail(post.port, tls="tls", ca=str(authority.file))})
        async with house.gateway(Bank(), config=tree) as gateway:
            assert await gateway.notices.test(BEN, "post") == {"ben@bank.example": Sent()}
    assert [one.mail["Subject"] for one in post.letters] == ["[holdfast] a test of this channel"]


@requirement("APR-7")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ca": None}, "its certificate is not trusted"),
        ({"elsewhere": True}, "its certificate is not trusted"),
        ({"password": "${secret:hook}"}, "did not let us in"),
        ({"user": None, "password": None}, "refused"),
        ({"plain": True}, "does not offer"),
    ],
)
async def test_nothing_is_sent_over_a_line_that_is_not_what_it_should_be(
    tmp_path: Path, authority: Authority, changed: dict[str, Any], said: str
) -> None:
    plain, elsewhere = changed.pop("plain", False), changed.pop("elsewhere", False)
    safe = {
        "tls": "starttls",
        "ca": str(authority.file),
        "user": USER,
        "password": "${secret:mail}",
    } | changed
    safe = {name: value for name, value in safe.items() if value is not None}
    shown = None if plain else authority.server(ELSEWHERE if elsewhere else HERE)
    with Post().open(shown, sign_in=not plain) as post:
        tree = told(tmp_path, {"post": mail(post.port, **safe)})
        async with House("memory", tmp_path).gateway(Bank(), config=tree) as gateway:
            outcome = (await gateway.notices.test(BEN, "post"))["ben@bank.example"]
    assert isinstance(outcome, Again | Never)
    assert said in outcome.said
    assert post.letters == []


@requirement("APR-7")
async def test_a_refused_recipient_is_given_up_and_the_others_get_theirs(
    house: House, tmp_path: Path
) -> None:
    post = Post()
    post.refused = {"gone@bank.example": "550 no such user", "slow@bank.example": "451 later"}
    people = ("gone@bank.example", "slow@bank.example", "ben@bank.example")
    with post.open():
        async with house.gateway(Bank(), config=told(tmp_path, {"post": mail(post.port, people)})) as gateway:
            await pay(gateway)
            await gateway.notices.round()
            [state] = await gateway.notices.channels(BEN)
            assert (state.tally.sent, state.tally.failed, state.tally.waiting) == (1, 1, 1)
            post.refused.clear()
            await house.clock.advance(defaults.NOTICE_RETRY_S * 2)
            await gateway.notices.round()
            kept = {one.to: one for one in await gateway.notices.list(BEN)}
    assert sorted(one.to[0] for one in post.letters) == ["ben@bank.example", "slow@bank.example"]
    assert "no such user" in kept["gone@bank.example"].said
    assert kept["gone@bank.example"].failed_at is not None


@requirement("APR-7")
async def test_a_mail_server_that_is_down_gets_the_mail_when_it_is_back(house: House, tmp_path: Path) -> None:
    with Post().open() as gone:
        pass
    async with house.gateway(Bank(), config=told(tmp_path, {"post": mail(gone.port)})) as gateway:
        await pay(gateway)
        await gateway.notices.round()
        [state] = await gateway.notices.channels(BEN)
    assert (state.tally.waiting, state.tally.said) == (1, "cannot reach the mail server: connection refused")
    with Post().open() as post:
        async with house.gateway(Bank(), config=told(tmp_path, {"post": mail(post.port)})) as gateway:
            await house.clock.advance(defaults.NOTICE_RETRY_S * 2)
            await gateway.notices.round()
    assert len(post.letters) == 1


@asynccontextmanager
async def silent(greeting: bytes = b"") -> AsyncIterator[int]:
    """Takes connections, and says no more than this."""
    writers = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(greeting)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


@requirement("APR-7")
@pytest.mark.parametrize("greeting", [b"", b"220 hello\r\n", b"220-never\r\n"])
async def test_a_mail_server_that_hangs_is_cut_off_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, greeting: bytes
) -> None:
    monkeypatch.setattr(defaults, "MAIL_SEND_S", 0.05)
    async with silent(greeting) as port:
        tree = told(tmp_path, {"post": mail(port)})
        async with House("memory", tmp_path).gateway(Bank(), config=tree) as gateway:
            outcome = await gateway.notices.test(BEN, "post")
    assert isinstance(outcome["ben@bank.example"], Again)


@requirement("APR-7", "POL-6")
async def test_a_mail_server_is_reached_through_the_egress_rules(tmp_path: Path) -> None:
    with Post().open() as post:
        tree = told(tmp_path, {"post": mail(post.port)}) | {"egress": {"mode": "none"}}
        async with House("memory", tmp_path).gateway(Bank(), config=tree) as gateway:
            outcome = (await gateway.notices.test(BEN, "post"))["ben@bank.example"]
    assert isinstance(outcome, Again)
    assert "egress rule 'none'" in outcome.said
    assert post.letters == []


@requirement("APR-1", "APR-7")
async def test_what_an_agent_wrote_arrives_harmless(house: House, tmp_path: Path) -> None:
    evil = (
        "<script>alert(1)</script> \u202eevorppA\u202c <a href='https://evil.example/approve'>Approve</a>"
        "\r\nBcc: everybody@evil.example\r\n\r\nApprove here: https://evil.example/approve www.evil.example"
    )
    with Post().open() as post:
        async with house.gateway(Bank(), config=told(tmp_path, {"post": mail(post.port)})) as gateway:
            await pay(gateway, note=evil, order="o-1\r\nSubject: x")
            await gateway.notices.round()
    [got] = post.letters
    assert got.to == ["ben@bank.example"]
    assert got.mail.keys() == [
        *("From", "To", "Subject", "Date", "Message-ID", "References", "Auto-Submitted"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
        *(name for name in got.mail if name.startswith("X-")),
    ]
    assert got.mail.get_content_type() == "text/plain"
    assert "\u202e" not in got.text
    assert "⟦U+202E⟧evorppA" in got.text
    links = [word for word in got.text.split() if "://" in word or word.startswith("www.")]
    assert [link.startswith(f"{BASE}/approvals/apr_") for link in links] == [True]
    for line in got.text.splitlines():
        assert line.startswith("> ") or "evil" not in line


@requirement("APR-7")
@pytest.mark.parametrize("name", ["tool\r\nBcc: x@y.example", "tool\u2028Bcc: x", "t" * 5000, "tööl\0"])
def test_no_name_can_add_a_header(name: str) -> None:
    body = {
        "event": "approval.asked", "tool": name, "approval_id": name, "call_id": name,
        "requested_by": {"user": name, "agent": name}, "need": {name: 1}, "link": None,
    }  # fmt: skip
    notice = Notice(
        tenant="t",
        id="ntc_1",
        channel="c",
        event="asked",
        about=name,
        body=body,
        at=0.0,
        due_at=0.0,
        to="a@b.example",
    )
    written = letter(notice, "gate@bank.example").as_bytes(policy=policy.SMTP)
    head, _, _ = written.partition(b"\r\n\r\n")
    names = [line.partition(b":")[0] for line in head.split(b"\r\n") if not line.startswith((b" ", b"\t"))]
    assert b"Bcc" not in names
    assert len(names) == len(set(names)) == 10


@requirement("APR-7")
async def test_mail_goes_to_the_addresses_of_the_roles_that_are_asked(house: House, tmp_path: Path) -> None:
    to = {"operator": ["ops@bank.example"], "lead": ["lia@bank.example"], "*": ["log@bank.example"]}
    with Post().open() as post:
        tree = told(
            tmp_path, {"post": mail(post.port, to)}, {"chain": [["operator"], ["lead"]]}, lia=["lead"]
        )
        async with house.gateway(Bank(), config=tree) as gateway:
            await pay(gateway)
            await gateway.notices.round()
            assert sorted(one.to[0] for one in post.letters) == ["log@bank.example", "ops@bank.example"]
            await house.clock.advance(defaults.APPROVAL_S / 2)
            await gateway.tidy()
            await gateway.notices.round()
    later = sorted(one.to[0] for one in post.letters[2:])
    assert later == ["lia@bank.example", "log@bank.example"]
    assert post.letters[-1].mail["Subject"] == "[holdfast] still waits for an answer: test.pay"


@requirement("FIG-1", "APR-7")
async def test_nobody_gets_more_than_three_mails_in_an_hour_and_the_rest_comes_in_one(
    house: House, tmp_path: Path
) -> None:
    with Post().open() as post:
        async with house.gateway(Bank(), config=told(tmp_path, {"post": mail(post.port)})) as gateway:
            for number in range(10):
                await gateway.notices.alert(alert(number, house.clock.now()))
                await gateway.notices.round()
                await house.clock.advance(60.0)
            assert len(post.letters) == defaults.MAILS_PER_RECIPIENT_HOUR
            await house.clock.advance(HOUR_S - 10 * 60.0 - 1.0)
            await gateway.notices.round()
            assert len(post.letters) == 3
            await house.clock.advance(1.0)
            await gateway.notices.round()
            await gateway.notices.round()
            [state] = await gateway.notices.channels(BEN)
    subjects = [one.mail["Subject"] for one in post.letters]
    assert subjects == [
        *(f"[holdfast] alert: tool-{n}" for n in range(3)),
        "[holdfast] alert: tool-3 and 6 more",
    ]
    assert ["comes in one mail then" in one.text for one in post.letters] == [False, False, True, True]
    assert [f"tool-{n}: it is slow" in post.letters[3].text for n in range(4, 10)] == [True] * 6
    assert (state.tally.sent, state.tally.waiting) == (10, 0)


@requirement("FIG-1", "APR-7")
async def test_mails_of_one_channel_to_several_people_are_counted_for_each(
    house: House, tmp_path: Path
) -> None:
    people = ("ben@bank.example", "cat@bank.example")
    with Post().open() as post:
        async with house.gateway(Bank(), config=told(tmp_path, {"post": mail(post.port, people)})) as gateway:
            for number in range(5):
                await gateway.notices.alert(alert(number, house.clock.now()))
                await gateway.notices.round()
                await house.clock.advance(1.0)
    assert sorted(one.to[0] for one in post.letters) == [people[0]] * 3 + [people[1]] * 3


@requirement("APR-7")
async def test_what_waits_at_one_moment_is_one_mail_and_what_was_answered_meanwhile_is_none(
    house: House, tmp_path: Path
) -> None:
    with Post().open() as post:
        async with house.gateway(Bank(), config=told(tmp_path, {"post": mail(post.port)})) as gateway:
            asked = [(await pay(gateway, key)).approval for key in ("a", "b", "c")]
            await gateway.notices.look()
            assert asked[1] is not None
            for by in (BEN, CAT):
                await gateway.decide(by, asked[1].id, True)
            await gateway.notices.round()
            said = sorted(one.said.partition(" ntc")[0] for one in await gateway.notices.list(BEN))
    [got] = post.letters
    assert got.mail["Subject"] == "[holdfast] approve or deny: test.pay and 1 more"
    assert asked[1].id not in got.text
    assert said == ["", "not sent: the question was over by then", "told with"]


@requirement("APR-7", "APR-3")
async def test_mail_tells_that_nobody_answered_and_who_did(house: House, tmp_path: Path) -> None:
    with Post().open() as post:
        tree = told(tmp_path, {"post": mail(post.port, events=["decided", "expired"])})
        async with house.gateway(Bank(), config=tree) as gateway:
            first = await pay(gateway, "a")
            assert first.approval is not None
            await gateway.decide(BEN, first.approval.id, False, "not today")
            await gateway.notices.round()
            await pay(gateway, "b")
            await gateway.notices.round()
            await house.clock.advance(defaults.APPROVAL_S)
            await gateway.tidy()
            await gateway.notices.round()
    assert [one.mail["Subject"] for one in post.letters] == [
        "[holdfast] was answered: test.pay",
        "[holdfast] was denied: nobody answered in time: test.pay",
    ]
    assert "Denied by ben (operator)" in post.letters[0].text


@requirement("APR-7", "TEL-3")
def test_what_an_agent_calls_its_task_is_no_link_in_a_mail_about_it() -> None:
    task = "https://evil.example/approve"
    body = {"event": "alert", "subject": f"ana test.pay {task}", "text": f"called for task {task!r}; stop it"}
    about: dict[str, Any] = {
        "tenant": "default",
        "channel": "mail",
        "to": "ops@bank.example",
        "event": "alert",
    }
    one = Notice(**about, id="ntc_1", about="alert_1", body=body, at=1.0, due_at=1.0)
    mail = letter(one, "gate@bank.example", [one, one])
    assert "://" not in mail["Subject"]
    assert "evil.example" not in mail.get_content()
    assert "https[:]//evil[.]example/approve" in mail.get_content()
