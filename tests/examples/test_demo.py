"""Does the demo show what it says, on its real database?"""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Gateway, Observation, Status
from holdfast.execution.runtime import Runtime
from holdfast.ports import Attempt, Ports, Upstream
from tests.examples.demo import AGENT, KIM, config, rows, unimported
from tests.requirements import requirement

REFUND = {"order_id": "o-1001", "amount_cents": 1500, "reason": "damaged"}
NOTE = {"order_id": "o-1001", "text": "asked for a call"}
MAIL = {"order_id": "o-1002", "subject": "Your lamp", "body": "It is on its way."}

Adapt = Callable[[Ports, Runtime], tuple[Ports, Runtime]]


@pytest.fixture
def shop_db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "shop.db"
    monkeypatch.setenv("SHOP_DB", str(path))
    return path


@pytest.fixture
async def demo(tmp_path: Path, shop_db: Path) -> AsyncIterator[Gateway]:
    with unimported():
        async with Gateway.open(config(tmp_path)) as gateway:
            yield gateway


async def approved(gateway: Gateway, tool: str, arguments: dict[str, Any], key: str) -> Observation:
    """Held, approved by both people of the demo, and proposed again."""
    held = await gateway.call(tool, arguments, key=key, principal=AGENT)
    assert held.status is Status.HELD
    assert held.approval is not None
    for name in ("ana", "ben"):
        await gateway.decide(gateway.identity.at_terminal(name), held.approval.id, True)
    return await gateway.call(tool, arguments, key=key, principal=AGENT)


@requirement("CON-4")
async def test_the_demo_has_nothing_for_doctor_to_find(demo: Gateway) -> None:
    assert demo.findings() == []


async def test_a_list_comes_from_the_cache_and_an_order_never_does(demo: Gateway) -> None:
    seen = [await demo.call("shop.list_orders", principal=AGENT) for _ in range(2)]
    looked = [await demo.call("shop.get_order", {"order_id": "o-1001"}, principal=AGENT) for _ in range(2)]
    assert [s.provenance and s.provenance.freshness for s in seen] == ["live", "cached"]
    assert [s.provenance and s.provenance.freshness for s in looked] == ["live", "live"]


async def test_a_note_is_written_once_and_taken_back_by_its_compensation(
    demo: Gateway, shop_db: Path
) -> None:
    first = await demo.call("shop.add_note", NOTE, key="n", principal=AGENT)
    again = await demo.call("shop.add_note", NOTE, key="n", principal=AGENT)
    assert again == first.as_replayed()
    assert first.outcome is not None
    assert first.outcome.strength == "exactly_once"
    assert rows(shop_db, "SELECT order_id, text, removed FROM notes") == [("o-1001", NOTE["text"], 0)]
    undone = await demo.call("shop.remove_note", {"note_id": first.data["note_id"]}, key="u", principal=AGENT)
    assert undone.status is Status.DONE
    assert rows(shop_db, "SELECT removed FROM notes") == [(1,)]


async def test_two_callers_with_one_key_write_two_notes(demo: Gateway, shop_db: Path) -> None:
    other = replace(AGENT, user="lou")
    await demo.call("shop.add_note", NOTE, key="n", principal=AGENT)
    seen = await demo.call("shop.add_note", NOTE, key="n", principal=other)
    assert (seen.status, seen.replayed) == (Status.DONE, False)
    assert rows(shop_db, "SELECT count(*) FROM notes") == [(2,)]


async def test_a_mail_leaves_only_after_its_own_user_agreed(demo: Gateway, shop_db: Path) -> None:
    shown = await demo.call("shop.send_mail", MAIL, preview=True, principal=AGENT)
    assert shown.preview is not None
    assert shown.preview["impact"]["email"] == "jon@example.com"
    held = await demo.call("shop.send_mail", MAIL, key="m", principal=AGENT)
    assert held.status is Status.HELD
    assert held.approval is not None
    assert rows(shop_db, "SELECT count(*) FROM outbox") == [(0,)]
    await demo.decide(KIM, held.approval.id, True)
    sent = await demo.call("shop.send_mail", MAIL, key="m", principal=AGENT)
    assert (sent.status, sent.verification and sent.verification["delay_s"]) == (Status.DONE, 3600)
    assert rows(shop_db, "SELECT recipient, subject FROM outbox") == [("jon@example.com", "Your lamp")]


async def test_a_refund_waits_for_two_people_and_is_read_back(demo: Gateway, shop_db: Path) -> None:
    done = await approved(demo, "shop.refund", REFUND, "r")
    assert (done.status, done.data["amount_cents"]) == (Status.DONE, 1500)
    assert done.outcome is not None
    assert (done.outcome.rung, done.outcome.strength) == ("verified", "probed")
    assert rows(shop_db, "SELECT amount_cents FROM refunds") == [(1500,)]
    assert rows(shop_db, "SELECT refunded_cents, version FROM orders WHERE order_id = 'o-1001'") == [
        (1500, 2)
    ]


async def test_a_preview_of_a_refund_says_what_would_be_left_and_does_nothing(
    demo: Gateway, shop_db: Path
) -> None:
    seen = await demo.call("shop.refund", REFUND, preview=True, principal=AGENT)
    assert seen.status is Status.PREVIEW
    assert seen.preview is not None
    assert seen.preview["impact"]["left_after_cents"] == 3400
    assert rows(shop_db, "SELECT count(*) FROM refunds") == [(0,)]


async def test_nobody_gets_back_more_than_was_paid(demo: Gateway) -> None:
    seen = await demo.call("shop.refund", REFUND | {"amount_cents": 4901}, key="r", principal=AGENT)
    assert (seen.code, [error.path for error in seen.field_errors]) == (
        Code.SEMANTIC_INVALIDITY,
        ["/amount_cents"],
    )


async def test_a_refund_planned_on_an_old_order_is_stale(demo: Gateway) -> None:
    await approved(demo, "shop.refund", REFUND, "r")
    seen = await demo.call("shop.refund", REFUND, key="r2", if_match="1", principal=AGENT)
    assert (seen.code, seen.data["version"]) == (Code.STALE_STATE, "2")


async def test_an_order_nobody_knows_is_never_refunded(demo: Gateway, shop_db: Path) -> None:
    seen = await demo.call("shop.refund", REFUND | {"order_id": "o-9999"}, key="r", principal=AGENT)
    assert seen.status is Status.REFUSED
    assert rows(shop_db, "SELECT count(*) FROM refunds") == [(0,)]


class Hangs:
    """An upstream whose answer to a refund gets lost after the refund was made."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.concurrency = upstream.concurrency
        self.personal = False

    async def invoke(self, attempt: Attempt) -> Any:
        answer = await self.upstream.invoke(attempt)
        if attempt.tool.contract.tool == "shop.refund":
            raise ConnectionResetError("the line went dead")
        return answer

    async def close(self) -> None:
        await self.upstream.close()


def lossy(ports: Ports, runtime: Runtime) -> tuple[Ports, Runtime]:
    upstreams = {name: Hangs(upstream) for name, upstream in runtime.upstreams.items()}
    return ports, replace(runtime, upstreams=upstreams)


@requirement("IDM-5")
async def test_a_refund_whose_answer_is_lost_is_found_by_its_probe(tmp_path: Path, shop_db: Path) -> None:
    with unimported():
        async with Gateway.open(config(tmp_path), adapt=lossy) as demo:
            seen = await approved(demo, "shop.refund", REFUND, "r")
            again = await demo.call("shop.refund", REFUND, key="r", principal=AGENT)
    assert seen.status is Status.DONE
    assert seen.data["reference"].startswith("r.")
    assert seen.outcome is not None
    assert seen.outcome.rung == "observed"
    assert (again.status, again.replayed) == (Status.DONE, True)
    assert rows(shop_db, "SELECT count(*) FROM refunds") == [(1,)]
