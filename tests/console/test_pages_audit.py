"""*Audit*: are records found, proven in view, and taken away in a form that anybody can verify?"""

from pathlib import Path

import pytest

from holdfast.gateway.logfile import public_key
from holdfast.records.verify import verify_export
from holdfast.servers.console.pages import audit
from tests.console.asking import Page
from tests.console.office import HOSTILE, World, cells, harmless, over_socket, world
from tests.console.visitor import Visitor, text
from tests.requirements import requirement


@requirement("AUD-2", "PPL-2")
async def test_records_are_found_by_call_kind_tool_caller_and_time(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        visitor = await there.browser("ana")
        assert "The log is empty" in text(await visitor.get("/audit"))
        added = await there.call("add", text="x")
        await there.call("count", by="eve")
        held = await there.call("send", to="x")
        queries = {
            f"call={added.call_id}": ["outcome", "intent"],
            f"call={held.call_id}&kind=hold": ["hold"],
            "tool=office.count": ["outcome", "intent"],
            "caller=eve": ["outcome", "intent"],
            "tool=office.add&caller=eve": [],
            "kind=ask": ["ask"],
            "until=2001-01-01T00:00": [],
            "since=2001-01-01T00:00&kind=hold": ["hold"],
        }
        for query, kinds in queries.items():
            page = await visitor.get(f"/audit?{query}")
            assert harmless(page)
            assert sorted(cells(page, "Kind")) == sorted(kinds), query


@requirement("PPL-2")
async def test_deep_pages_lead_to_every_record_once_also_where_few_are_of_the_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "SCANNED", 10)
    monkeypatch.setattr(audit, "MOST_READ", 5)
    async with world(tmp_path) as there:
        for _ in range(60):
            await there.call("count")
        await there.call("send", to="x")
        for _ in range(10):
            await there.call("count")
        visitor = await there.browser("ana")
        leaves = await _walked(visitor, "/audit", "Leaf")
        assert len(leaves) == len(set(leaves)) >= 142
        times = await _walked(visitor, "/audit", "When")
        assert times == sorted(times, reverse=True)
        assert await _walked(visitor, "/audit?kind=hold", "Kind") == ["hold"]
        auditor = await there.browser("ada")
        assert len(await _walked(auditor, "/audit?tool=office.send", "Kind")) == 1


async def _walked(visitor: Visitor, path: str, column: str) -> list[str]:
    found: list[str] = []
    while path:
        answer = await visitor.get(path)
        found += cells(answer, column)
        path = next((one["href"] for one in Page(answer).all("a") if one.get("rel") == "next"), "")
    return found


@requirement("AUD-1", "PPL-2")
async def test_one_record_is_shown_with_its_proof_step_by_step(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        done = await there.call("add", text=HOSTILE, task=HOSTILE)
        await there.gateway._house.keep_log(sign_now=True)
        visitor = await there.browser("ana")
        listed = Page(await visitor.get(f"/audit?call={done.call_id}"))
        path = next(one["hx-get"] for one in listed.all("a") if "hx-get" in one)
        page = await visitor.get(path)
        assert harmless(page)
        assert "Proof verified" in text(page)
        assert page.body.decode().count('<li class="yes">') == 3
        assert "input_commitment" in text(page)
        assert "checkpoint" in text(page).lower()
        await there.call("count")
        newest = Page(await visitor.get("/audit"))
        path = next(one["hx-get"] for one in newest.all("a") if "hx-get" in one)
        assert "In the log, not signed yet" in text(await visitor.get(path))


@requirement("AUD-4", "PPL-2")
async def test_the_export_is_verified_by_the_public_key_alone_and_is_on_record(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        await there.call("add", text="x")
        visitor = await there.browser("ana")
        answer = await over_socket(there, visitor, "/audit/export", {"since": ""})
        assert answer.status == 200
        assert "attachment" in answer.headers["content-disposition"]
        file = tmp_path / "export.jsonl"
        file.write_bytes(answer.body)
        report = verify_export(file, public_key(there.gateway.config), None)
        assert report.ok
        assert report.leaves == answer.body.count(b"\n") - 2 >= 3
        assert "export" in cells(await visitor.get("/audit?kind=control"), "What")
        assert (await visitor.get("/audit/export")).status in (404, 405)


@requirement("PPL-2")
async def test_who_may_not_read_the_log_is_told_what_it_takes(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        done = await there.call("add", text="x")
        [record] = await _records(there, done.call_id, 1)
        otto, xena = await there.browser("otto"), await there.browser("xena")
        assert "The log is for auditors" in text(await otto.get("/audit"))
        assert (await otto.get(f"/audit/{record}")).status == 403
        assert (await otto.post("/audit/export")).status == 403
        assert (await xena.get(f"/audit/{record}")).status == 404
        assert cells(await xena.get(f"/audit?call={done.call_id}"), "Kind") == []
        assert (await (await there.browser("ada")).get("/audit?of=gateway")).status == 403
        assert (await xena.get("/audit?cursor=%00")).status == 400


async def _records(there: World, call_id: str, most: int) -> list[str]:
    entries = await there.gateway.log.of_call(there.person("ana"), call_id, -1, most)
    return [entry.record.id for entry in entries]
