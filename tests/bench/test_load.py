"""Does the load ask as each protocol wants it, and take only right answers for right?"""

import json

import pytest

from bench.gateways import running_upstream
from bench.load import Load, Orders
from bench.memory import fitted
from bench.speech import SPEECHES, filled


@pytest.mark.parametrize("name", sorted(SPEECHES))
def test_a_request_names_its_item_and_its_number(name: str) -> None:
    template = SPEECHES[name].template("read", keyed=False)
    said = json.loads(filled(template, b"p-00000007", 7))
    assert "p-00000007" in json.dumps(said)
    assert "@" not in json.dumps(said)
    assert said.get("id", 7) == 7


@pytest.mark.parametrize("name", ["modern", "legacy", "rest", "jsonrpc"])
def test_a_keyed_request_names_its_operation_after_its_item(name: str) -> None:
    said = json.loads(filled(SPEECHES[name].template("write", keyed=True), b"p-00000007", 7))
    assert json.dumps(said).count("p-00000007") == 2


def orders(url: str, **more: object) -> Orders:
    told = {"speech": "modern", "tool": "read", "concurrency": 2, "seconds": 0.05, "warm_up": 0.0}
    return Orders(**{"url": url, "prefix": "t", **told, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("speech", ["modern", "legacy"])
async def test_the_upstream_answers_every_call_in_both_eras(speech: str) -> None:
    with running_upstream() as (url, _):
        seen = await Load(orders(url, speech=speech)).run()
    assert seen["faults"] == 0
    assert seen["calls"] > 0
    assert seen["p50_ms"] <= seen["p95_ms"] <= seen["p99_ms"]


async def test_an_answer_that_is_no_result_is_a_fault() -> None:
    with running_upstream() as (url, _):
        seen = await Load(orders(url.replace("/mcp", ""), speech="rest")).run()
    assert seen["calls"] == 0
    assert seen["faults"] > 0


def test_memory_that_rises_is_not_flat_and_memory_that_scatters_is() -> None:
    rising = [(60.0 * n, 100.0 + n) for n in range(30)]
    level = [(60.0 * n, 100.0 + n % 2) for n in range(30)]
    assert not fitted(rising).flat
    assert fitted(rising).slope_mb_h == pytest.approx(60.0)
    assert fitted(level).flat
