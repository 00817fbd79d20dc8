"""What does an egress rule in the configuration change for callers, tools and operators?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Gateway
from holdfast.cli.doctor import _egress
from holdfast.config import parse
from holdfast.model.errors import Code, ConfigError
from holdfast.model.observation import Observation, Status
from holdfast.model.vocabulary import Egress, Floor
from tests.gateway.depot import OVERLAY, Depot, config
from tests.gateway.test_discovery import ME
from tests.requirements import requirement
from tests.upstreams.mcp.places import serving


@asynccontextmanager
async def ruled(
    folder: Path,
    egress: dict[str, Any] | None,
    *,
    overlay: str = OVERLAY,
    everywhere: dict[str, Any] | None = None,
    connect: bool = True,
) -> AsyncIterator[tuple[Gateway, Depot, str]]:
    """A gateway before a depot that is known to it already, and its address."""
    depot = Depot()
    async with serving(depot.app()) as origin:
        tree = config(folder, f"{origin}/mcp", overlay=overlay)
        if not connect:
            async with Gateway.open(tree):
                pass  # now the lock file knows what there is
        if egress is not None:
            tree["upstreams"]["depot"]["egress"] = egress
        if everywhere is not None:
            tree["egress"] = everywhere
        async with Gateway.open(tree, connect=connect) as gateway:
            yield gateway, depot, origin.removeprefix("http://")


async def taken(gateway: Gateway) -> Observation:
    return await gateway.call("depot.take", {"item": "nail"}, principal=ME, key="k-1")


@requirement("POL-6", "LIF-5")
async def test_a_call_that_may_not_be_dialled_is_refused_without_effect_and_says_no_address(
    tmp_path: Path,
) -> None:
    async with ruled(tmp_path, {"mode": "none"}, connect=False) as (gateway, depot, address):
        seen = await taken(gateway)
        shown = repr(seen)
        await gateway.tidy()
        events = [
            entry.record
            for entry in await gateway._auditing.since("*", 0.0, -1, 100)
            if entry.record.kind == "security"
        ]
    assert (seen.status, seen.code) == (Status.FAILED, Code.POLICY_VIOLATION)
    assert not seen.remedy.retryable
    assert "nothing was sent" in shown
    assert "the egress rule 'none' does not let the gateway connect there" in shown
    host, _, port = address.partition(":")
    assert host not in shown
    assert f":{port}" not in shown
    assert depot.taken == []
    assert len(events) == 1, "each refusal is on record once, however often it is tried"
    assert "egress refused: upstreams.depot: no connection to" in events[0].body
    assert port in events[0].body


@requirement("POL-6")
async def test_a_refusal_is_on_record_also_when_the_gateway_closes_at_once(tmp_path: Path) -> None:
    async with ruled(tmp_path, {"mode": "none"}, connect=False) as (gateway, _, _):
        await taken(gateway)
    async with Gateway.open(config(tmp_path, "http://127.0.0.1:9/mcp"), connect=False) as later:
        entries = await later._auditing.since("*", 0.0, -1, 100)
    assert ["egress refused" in one.record.body for one in entries].count(True) == 1


@requirement("POL-6")
async def test_the_written_url_is_believed_by_every_rule_but_none(tmp_path: Path) -> None:
    for number, egress in enumerate(({"mode": "listed"}, {"mode": "private"}, {"mode": "public"}, None)):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with ruled(folder, egress) as (gateway, depot, _):
            assert (await taken(gateway)).status is Status.DONE
            assert depot.taken == ["nail"]


@requirement("POL-6")
async def test_a_rule_for_everything_holds_unless_the_upstream_has_its_own(tmp_path: Path) -> None:
    for number, (own, done) in enumerate(((None, False), ({"mode": "public"}, True))):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with ruled(folder, own, everywhere={"mode": "none"}, connect=False) as (gateway, _, _):
            assert ((await taken(gateway)).status is Status.DONE) is done


@requirement("POL-6")
async def test_with_approval_means_that_a_person_is_asked_about_every_call(tmp_path: Path) -> None:
    async with ruled(tmp_path, {"mode": "approval"}) as (gateway, _, _):
        read = await gateway.call("depot.stock", {"item": "nail"}, principal=ME, key="k-2")
        assert read.status is Status.HELD
        found = gateway._ports.catalog.find("depot.stock", None)
        assert found is not None
        security = found.tool.contract.security
        assert (security.egress, security.approval_floor) == (Egress.WITH_APPROVAL, Floor.USER)


@requirement("POL-6")
@pytest.mark.parametrize(
    ("mode", "said", "told"),
    [
        ("public", "none", "'security.egress' is 'none', and the tool is behind a url"),
        ("public", "private_network_only", "the rule of the upstream is 'public'"),
        ("private", "private_network_only", None),
        ("listed", "allowlisted_domains", None),
        ("public", "allowlisted_domains", None),
    ],
)
async def test_a_contract_that_promises_less_than_its_upstream_keeps_is_refused(
    tmp_path: Path, mode: str, said: str, told: str | None
) -> None:
    overlay = OVERLAY.replace("effect: READ_ONLY", f"effect: READ_ONLY, egress: {said}")
    async with ruled(tmp_path, {"mode": mode}, overlay=overlay) as (gateway, _, _):
        names = {one.tool.contract.tool for one in gateway.tools(ME)}
        findings = "\n".join(gateway.findings())
    assert ("depot.stock" in names) is (told is None)
    assert told is None or told in findings
    assert "depot.take" in names


@requirement("POL-6")
@pytest.mark.parametrize(("mode", "expected"), [("private", Egress.PRIVATE), ("listed", Egress.ALLOWLISTED)])
async def test_policies_see_the_rule_of_the_upstream(tmp_path: Path, mode: str, expected: Egress) -> None:
    async with ruled(tmp_path, {"mode": mode}) as (gateway, _, _):
        found = gateway._ports.catalog.find("depot.stock", None)
    assert found is not None
    assert found.tool.contract.security.egress is expected


@requirement("POL-6")
async def test_doctor_says_what_leads_inside_and_what_is_not_let_through(tmp_path: Path) -> None:
    async with ruled(tmp_path, None) as (gateway, _, _):
        [inside] = [finding async for finding in _egress(gateway)]
    assert (inside.state, "leads to loopback addresses" in inside.text) == ("ok", True)
    assert "the rule is 'public'" in inside.text
    async with ruled(tmp_path, {"mode": "none"}, connect=False) as (gateway, _, _):
        [barred] = [finding async for finding in _egress(gateway)]
    assert (barred.state, "is not connected to" in barred.text) == ("wrong", True)


@requirement("POL-6")
@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ({"egress": {"mode": "anything"}}, "egress.mode"),
        ({"egress": {"allow": ["127.1"]}}, "egress.allow.0: '127.1' is not allowed here; write a host"),
        ({"egress": {"mode": "none", "allow": ["a.example"]}}, "'none' lets nothing through"),
        ({"upstreams": {"a": {"mcp": {"url": "http://0x7f.1/"}}}}, "can be read in two ways"),
        ({"upstreams": {"a": {"mcp": {"command": "a"}, "egress": {}}}}, "is for servers with a 'url'"),
    ],
)
def test_a_rule_that_cannot_hold_is_told_so(tree: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=r".") as raised:
        parse(tree)
    assert told in str(raised.value)
