"""Is a server told what waits, in a way it can trust, and until it has heard it?"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway.notices import sending
from holdfast.gateway.notices.outcome import Again, Outcome, Sent
from holdfast.gateway.notices.told import MOST_BYTES, bounded
from holdfast.gateway.notices.webhook import retry_after, signed
from holdfast.model import defaults
from holdfast.model.people import Alert
from tests.approvals.bank import BEN, CAT, Bank, pay, person
from tests.approvals.opening import House
from tests.channels.bench import ALL, BASE, hook, told
from tests.channels.receiver import KEY, Receiver
from tests.polling import until
from tests.requirements import requirement
from tests.stored import DURABLE

LIFE = defaults.APPROVAL_S


@requirement("APR-7", "APR-1")
async def test_a_question_is_told_signed_once_and_with_the_way_to_its_page(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        held = await pay(gateway, to="Mira Sand", password="hunter22", note="rent")
        assert held.approval is not None
        await gateway.notices.round()
        await gateway.notices.round()
    [got] = receiver.got
    assert got.signed_by(KEY)
    assert not got.signed_by(b"another key")
    assert abs(int(got.headers["webhook-timestamp"]) - house.clock.now()) <= 1
    assert (got.path, got.headers["content-type"]) == ("/hook", "application/json")
    said = got.said["data"]
    assert got.said["type"] == "approval.asked"
    assert (said["approval_id"], said["call_id"]) == (held.approval.id, held.call_id)
    assert (said["tool"], said["need"], said["risk_class"]) == (
        "test.pay",
        {"operator": 2},
        "CRITICAL_MUTATION",
    )
    assert said["consequence"] == "money leaves the bank"
    assert (said["requested_by"]["user"], said["answer"], said["roles"]) == ("ana", "PENDING", ["operator"])
    assert said["link"] == f"{BASE}/approvals/{held.approval.id}"


@requirement("APR-7", "CON-6")
async def test_nothing_sensitive_and_no_evidence_leaves_with_a_notice(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway, to="Peter Pan", password="hunter22", note="rent")
        await gateway.notices.round()
        [kept] = await gateway.notices.list(BEN)
    [got] = receiver.got
    for unsaid in (b"Peter Pan", b"hunter22", b"Mira Sand", b"0815-canary", b"balance"):
        assert unsaid not in got.body
    assert got.said["data"]["packet"]["arguments"]["note"] == "rent"
    assert kept.sent_at is not None


@requirement("APR-7")
async def test_what_an_agent_wrote_at_length_is_bounded_and_shows_what_is_hidden(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway, note="\u202e" * 80_000)
        await gateway.notices.round()
    [got] = receiver.got
    assert len(got.body) < MOST_BYTES
    assert "\u202e" not in got.body.decode()
    assert "⟦U+202E⟧" in got.body.decode()


@requirement("APR-7")
def test_what_is_too_long_for_a_notice_is_left_out_and_named() -> None:
    said = bounded({"small": 1, "large": ["x" * MOST_BYTES], "larger": "y" * 2 * MOST_BYTES})
    assert said == {"small": 1, "left_out": ["larger", "large"]}


@requirement("APR-7")
async def test_a_receiver_that_fails_is_told_again_later_under_the_same_id(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers += [(500, {}), (302, {"location": "http://169.254.169.254/"}), (200, {})]
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway)
        await gateway.notices.round()
        await gateway.notices.round()
        assert len(receiver.got) == 1  # not before its time
        [state] = await gateway.notices.channels(BEN)
        assert (state.tally.waiting, state.tally.sent) == (1, 0)
        assert state.tally.said == "the receiver answered with HTTP status 500"
        await house.clock.advance(defaults.NOTICE_RETRY_S * 2)
        await gateway.notices.round()
        [state] = await gateway.notices.channels(BEN)
        assert "no redirect is followed" in state.tally.said
        await house.clock.advance(defaults.NOTICE_RETRY_S * 4)
        await gateway.notices.round()
        [state] = await gateway.notices.channels(BEN)
        await house.clock.advance(LIFE)
        await gateway.notices.round()
    assert len({got.id for got in receiver.got}) == 1
    assert len(receiver.got) == 3
    assert len({got.headers["webhook-timestamp"] for got in receiver.got}) == 3
    assert all(got.signed_by(KEY) for got in receiver.got)
    assert (state.tally.waiting, state.tally.sent, state.tally.said) == (0, 1, "")


@requirement("APR-7")
async def test_a_receiver_that_is_gone_gets_nothing_more_and_that_is_seen(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers += [(410, {})]
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway)
        await gateway.notices.round()
        await house.clock.advance(defaults.NOTICE_RETRY_CAP_S)
        await gateway.notices.round()
        [state] = await gateway.notices.channels(BEN)
    assert (len(receiver.got), state.tally.failed) == (1, 1)
    assert "410" in state.tally.said


@requirement("APR-7")
async def test_a_receiver_that_never_answers_is_given_up_in_the_end_and_stays_visible(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway)
        receiver.answers += [(503, {})] * 500
        for _ in range(int(defaults.NOTICE_GIVE_UP_S / defaults.NOTICE_RETRY_CAP_S) + 2):
            await gateway.notices.round()
            await house.clock.advance(defaults.NOTICE_RETRY_CAP_S)
        [state] = await gateway.notices.channels(BEN)
        tried = len(receiver.got)
        await gateway.notices.round()
        assert (state.tally.failed, state.tally.waiting, len(receiver.got)) == (1, 0, tried)
        assert tried > 10
        await house.clock.advance(defaults.NOTICE_KEPT_S)
        assert await gateway.notices.forget() == 1
        assert list(await gateway.notices.list(BEN)) == []


@requirement("APR-7")
async def test_a_wish_to_be_asked_later_is_heeded_within_bounds(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers += [(429, {"retry-after": "120"}), (503, {"retry-after": "999999"})]
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway)
        await gateway.notices.round()
        await house.clock.advance(119.0)
        await gateway.notices.round()
        assert len(receiver.got) == 1
        await house.clock.advance(1.0)
        await gateway.notices.round()
        assert len(receiver.got) == 2
        await house.clock.advance(defaults.NOTICE_RETRY_CAP_S)
        await gateway.notices.round()
    assert len(receiver.got) == 3


@requirement("APR-7")
def test_a_time_to_come_back_is_read_whichever_way_it_is_written() -> None:
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT", 1445412470.0) == 10.0
    assert retry_after("7", 0.0) == 7.0
    assert (retry_after("soon", 0.0), retry_after(None, 0.0)) == (None, None)
    assert retry_after("Mon, 01 Jan 99999999999 00:00:00 GMT", 0.0) is None
    assert retry_after("Mon, 01 Jan 2026 00:00:00 +99999999999999", 0.0) is None


@requirement("APR-7")
def test_a_signature_is_that_of_the_standards_own_example() -> None:
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    assert signed("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330.7, body, secret) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@requirement("APR-7")
def test_several_secrets_sign_while_one_is_replaced_and_a_broken_one_is_no_secret() -> None:
    headers = signed("ntc_1", 1.0, b"{}", "first second")
    assert [one[:3] for one in headers["webhook-signature"].split(" ")] == ["v1,", "v1,"]
    for bad in ("", "whsec_***", "whsec_", "first whsec_"):
        with pytest.raises(ValueError, match="secret of the webhook"):
            signed("ntc_1", 1.0, b"{}", bad)


@requirement("APR-7", "POL-6")
@pytest.mark.parametrize("url", ["http://127.0.0.1:9/hook", "https://169.254.169.254/latest/meta-data"])
async def test_a_channel_obeys_the_egress_rules(house: House, tmp_path: Path, url: str) -> None:
    tree = told(tmp_path, {"ops": hook(url)}) | {"egress": {"mode": "none"}}
    async with house.gateway(Bank(), config=tree) as gateway:
        outcome = await gateway.notices.test(BEN, "ops")
    assert isinstance(outcome[""], Again)
    assert "egress rule 'none'" in outcome[""].said


@requirement("APR-7")
async def test_a_test_goes_out_at_once_and_says_what_happened(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        assert await gateway.notices.test(BEN, "ops") == {"": Sent()}
        receiver.answers += [(404, {})]
        assert "404" in repr(await gateway.notices.test(BEN, "ops"))
    assert receiver.events == ["test", "test"]


@requirement("APR-7", "APR-3")
async def test_escalation_reaches_the_channel_of_the_next_group_at_its_share_of_the_time(
    house: House, tmp_path: Path
) -> None:
    async with Receiver().open() as first, Receiver().open() as leads, Receiver().open() as heads:
        channels = {
            "operators": hook(first.url, roles=["operator"]),
            "leads": hook(leads.url, roles=["lead"]),
            "heads": hook(heads.url, roles=["head"]),
        }
        chain = {"chain": [["operator"], ["lead"], ["head"]]}
        tree = told(tmp_path, channels, chain, lia=["lead"], hal=["head"])
        async with house.gateway(Bank(), config=tree) as gateway:
            await pay(gateway)
            seen = []
            for share in (0.0, 0.49, 0.01, 0.24, 0.01):
                await house.clock.advance(LIFE * share)
                await gateway.tidy()
                await gateway.notices.round()
                seen.append((len(first.got), len(leads.got), len(heads.got)))
    assert seen == [(1, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 0), (1, 1, 1)]
    assert (first.events, leads.events, heads.events) == (
        ["approval.asked"],
        ["approval.escalated"],
        ["approval.escalated"],
    )
    assert [got.said["data"]["roles"] for got in (*leads.got, *heads.got)] == [["lead"], ["head"]]


@requirement("APR-7", "APR-3")
async def test_a_question_that_nobody_answers_is_denied_and_told_as_such(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(
        Bank(), config=told(tmp_path, {"ops": hook(receiver.url, events=ALL)})
    ) as gateway:
        await pay(gateway)
        await gateway.notices.round()
        await house.clock.advance(LIFE)
        await gateway.tidy()
        await gateway.notices.round()
        await gateway.notices.round()
    assert receiver.events == ["approval.asked", "approval.expired"]
    assert receiver.got[1].said["data"]["answer"] == "AUTO_DENIED"


@requirement("APR-7")
async def test_an_answer_is_told_with_who_gave_it_also_where_nobody_was_told_of_the_question(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(
        Bank(), config=told(tmp_path, {"ops": hook(receiver.url, events=ALL)})
    ) as gateway:
        for key in ("told", "quick"):
            held = await pay(gateway, key)
            assert held.approval is not None
            if key == "told":
                await gateway.notices.round()
            await gateway.decide(BEN, held.approval.id, True)
            await gateway.decide(CAT, held.approval.id, key == "told", "no\u202ereally")
            await gateway.notices.round()
    assert receiver.events == ["approval.asked", "approval.decided", "approval.decided"]
    said = [got.said["data"] for got in receiver.got]
    assert [one["answer"] for one in said] == ["PENDING", "APPROVED", "DENIED"]
    assert [(v["person"], v["note"]) for v in said[2]["votes"]] == [("ben", ""), ("cat", "no⟦U+202E⟧really")]


@requirement("APR-7", "TEL-3")
async def test_an_alert_is_told_once_when_it_begins_and_once_when_it_is_over(
    house: House, tmp_path: Path
) -> None:
    at = house.clock.now()
    slow = Alert(
        tenant="*", id="alr_1", kind="latency", subject="shop.refund", text="it is slow",
        facts={"p99_ms": 9.5}, at=at, seen_at=at,
    )  # fmt: skip
    async with Receiver().open() as ours, Receiver().open() as theirs:
        channels = {"ops": hook(ours.url), "acme": hook(theirs.url, tenants=["acme"])}
        async with house.gateway(Bank(), config=told(tmp_path, channels)) as gateway:
            for one in (slow, slow, replace(slow, seen_at=at + 9), replace(slow, ended_at=at + 60)):
                await gateway.notices.alert(one)
                await gateway.notices.round()
            [state] = await gateway.notices.channels(BEN)
    assert ours.events == ["alert", "alert"]
    assert [got.said["data"]["ended_at"] is None for got in ours.got] == [True, False]
    assert ours.got[0].said["data"]["facts"] == {"p99_ms": 9.5}
    assert theirs.got == []  # what concerns the whole gateway is not one tenant's
    assert state.tally.sent == 2


@requirement("APR-7", "AUT-6")
async def test_a_channel_of_one_tenant_hears_nothing_of_another(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    tree = told(tmp_path, {"ops": hook(receiver.url, tenants=["acme"])})
    tree["auth"]["people"]["olga"] = {"roles": ["operator"], "tenant": "acme", "scopes": ["**"]}
    async with house.gateway(Bank(), config=tree) as gateway:
        assert (await pay(gateway)).approval is not None
        await gateway.notices.round()
        assert await gateway.notices.channels(BEN) == []
        assert [
            one.name for one in await gateway.notices.channels(person("olga", "operator", tenant="acme"))
        ] == ["ops"]
    assert receiver.got == []


@requirement("APR-7", "AUT-6")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_what_an_erased_tenant_was_to_be_told_goes_nowhere(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway)
        await gateway.notices.look()
        await gateway.log.erase(BEN, "default")
        await gateway.notices.round()
        [state] = await gateway.notices.channels(BEN)
    assert (receiver.got, state.tally.failed) == ([], 1)


@requirement("APR-7")
async def test_no_call_waits_for_a_channel_that_hangs(
    house: House, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answers += [None, None, None]
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        gateway.start()
        for key in ("a", "b", "c"):
            held = await pay(gateway, key)
        assert held.approval is not None
        await until(lambda: len(receiver.got) == 3)  # each hangs by now, beside the others
        assert (await gateway.decide(BEN, held.approval.id, True)).votes
        assert [one.sent_at for one in await gateway.notices.list(BEN)] == [None] * 3


@requirement("APR-7")
async def test_a_send_ends_at_its_deadline(
    house: House, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(defaults, "NOTICE_SEND_S", 0.05)
    receiver.answers += [None]
    async with house.gateway(Bank(), config=told(tmp_path, {"ops": hook(receiver.url)})) as gateway:
        await pay(gateway)
        await gateway.notices.round()
        [state] = await gateway.notices.channels(BEN)
    assert (state.tally.waiting, state.tally.said) == (1, "no answer within 0.05 s")


@requirement("APR-7")
async def test_what_was_under_way_when_a_gateway_closes_is_sent_by_the_next(
    house: House, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "CLOSING_S", 0.05)
    receiver.answers += [None]
    tree = told(tmp_path, {"ops": hook(receiver.url)})
    async with house.gateway(Bank(), config=tree) as gateway:
        gateway.start()
        await pay(gateway)
        await until(lambda: len(receiver.got) == 1)
    async with house.gateway(Bank(), config=tree) as gateway:
        await gateway.notices.round()
        [kept] = await gateway.notices.list(BEN)
    assert kept.sent_at is not None
    assert len(receiver.got) == 2
    assert len({got.id for got in receiver.got}) == 1


class Broken:
    """A way that does not keep what it promises."""

    async def send(self, *_: Any) -> Outcome:
        raise OverflowError("a date that is none")

    def close(self) -> None: ...


@requirement("APR-7")
async def test_what_breaks_in_sending_is_given_up_like_what_nobody_takes(
    house: House, tmp_path: Path
) -> None:
    tree = told(tmp_path, {"ops": hook("http://127.0.0.1:9/hook", events=["alert"])})
    async with house.gateway(Bank(), config=tree) as gateway:
        gateway.notices._sending._ways = {"ops": Broken()}
        now = house.clock.now()
        about: dict[str, Any] = {"tenant": "default", "id": "alert_1", "kind": "degraded"}
        alert = Alert(**about, subject="test.pay", text="it fails", facts={}, at=now, seen_at=now)
        await gateway.notices.alert(alert)
        for _ in range(200):
            await gateway.notices.round()
            await house.clock.advance(defaults.NOTICE_RETRY_CAP_S)
        [notice] = await gateway.notices.list(BEN)
    assert notice.failed_at is not None
    assert "something broke" in notice.said
