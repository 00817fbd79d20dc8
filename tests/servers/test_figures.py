"""Health, alerts and costs over HTTP: are they told to those who may know them, as they are described?"""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.gateway import Gateway
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.desk import Desk
from tests.servers.test_operate import fits

As = Callable[[str], Client]
COUNT: dict[str, Any] = {"tool": "desk.count", "arguments": {}}
REPORT = {"task": "t-1", "part": "model", "amount": 0.25}


@pytest.fixture
def config(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "telemetry": {"alerts": {"loop_failures": 3, "every_s": 3600}}}


@requirement("TEL-4", "NAM-3")
async def test_health_is_told_of_the_tools_one_may_use(as_person: As, desk: Desk) -> None:
    bob, olga = as_person("bob"), as_person("olga")
    await bob.post("/v1/calls", COUNT)
    seen = fits("Healths", (await bob.get("/v1/health")).json())
    counted = {one["name"]: one for one in seen["tools"]}
    assert counted["desk.count"]["calls"] == 1
    assert counted["desk.count"]["health"] == pytest.approx(1, abs=0.05)
    assert counted["desk.read"] == {
        "name": "desk.read",
        "health": 1.0,
        "calls": 0,
        "errors": 0,
        "timeouts": 0,
        "p99_ms": None,
        "baseline_ms": None,
    }
    assert "desk.send" not in counted  # bob may not use it, and does not learn of it
    assert "desk.send" in {one["name"] for one in (await olga.get("/v1/health")).json()["tools"]}
    assert [(one["name"], one["calls"]) for one in seen["upstreams"]] == [("desk", 1)]
    assert seen["window_s"] == 900


@requirement("TEL-3", "NAM-3")
async def test_alerts_are_told_to_operators(as_person: As, gateway: Gateway) -> None:
    bob, olga = as_person("bob"), as_person("olga")
    assert (await olga.get("/v1/alerts")).json() == {"alerts": []}
    for _ in range(3):
        await bob.post("/v1/calls", {"tool": "desk.count", "arguments": {"wrong": 1}})
    await gateway.views.fresh()
    await gateway.alerts.tend(("default",), now=True)
    [alert] = fits("Alerts", (await olga.get("/v1/alerts")).json())["alerts"]
    assert (alert["kind"], alert["subject"], alert["ended_at"]) == ("runaway_loop", "bob desk.count", None)
    [same] = (await olga.get("/v1/alerts?since=2026-01-31T08:00:00Z")).json()["alerts"]
    assert same == alert
    assert (await olga.get("/v1/alerts?since=2126-01-31T08:00:00")).json() == {"alerts": []}
    assert (await olga.get("/v1/alerts?since=soon")).status == 400
    assert (await olga.get("/v1/alerts?until=soon")).status == 400
    refused = await bob.get("/v1/alerts")
    assert (refused.status, "operator" in fits("TransportError", refused.json())["error"]) == (403, True)


@requirement("TEL-5", "NAM-3")
async def test_costs_of_a_task_are_reported_and_added_up(as_person: As) -> None:
    bob, olga = as_person("bob"), as_person("olga")
    said = await bob.post("/v1/costs", REPORT)
    assert (said.status, fits("CostReport", said.json())) == (201, {**REPORT, "currency": "USD"})
    await olga.post("/v1/costs", {**REPORT, "part": "retrieval", "currency": "EUR"})
    seen = fits("Costs", (await bob.get("/v1/costs?by=task")).json())
    own = {"name": "t-1", "currency": "USD", "calls": 0, "amount": 0.25, "parts": {"model": 0.25}}
    assert (seen["by"], seen["costs"]) == ("task", [own])
    everybodys = (await olga.get("/v1/costs?by=caller&since=2026-01-31")).json()["costs"]
    assert [(one["name"], one["currency"]) for one in everybodys] == [("bob", "USD"), ("olga", "EUR")]
    assert (await bob.get("/v1/costs")).json()["by"] == "tool"
    assert (await olga.get("/v1/costs?since=2126-01-31")).json()["costs"] == []


@requirement("TEL-5", "NAM-3")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**REPORT, "part": "compute"}, 400),
        ({**REPORT, "amount": "much"}, 400),
        ({**REPORT, "amount": True}, 400),
        ({**REPORT, "amount": -1}, 409),
        ({**REPORT, "currency": "dollars"}, 409),
        ({**REPORT, "task": ""}, 409),
        ({"part": "model", "amount": 1}, 400),
    ],
)
async def test_a_report_that_cannot_be_is_refused(client: Client, body: dict[str, Any], status: int) -> None:
    assert (await client.post("/v1/costs", body)).status == status
    assert (await client.get("/v1/costs?by=colour")).status == 400
