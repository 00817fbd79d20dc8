"""*Upstreams*: are they shown as they are, stopped and resumed by operators, and started anew?"""

import asyncio
from pathlib import Path

from holdfast.model.observation import Status
from tests.console.asking import signed_in
from tests.console.office import harmless, world
from tests.console.visitor import text
from tests.gateway.depot import Depot, fronted
from tests.polling import FELT_S, pause, until
from tests.requirements import requirement


@requirement("PPL-4", "PPL-2")
async def test_an_operator_halts_and_resumes_with_a_note(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        visitor = await there.browser("ana")
        page = await visitor.get("/upstreams")
        assert harmless(page)
        assert "office in this process" in text(page)
        assert "all closed" in text(page)
        for target in ("all", "office", "office.count", "otto/bot"):
            said = await visitor.post("/upstreams/halt", {"target": target, "note": "<b>stop</b>"})
            assert said.headers["location"] == "/upstreams?done=halted", target
            page = await visitor.get("/upstreams")
            assert harmless(page)
            assert "&lt;b&gt;stop" in page.body.decode()
            if "/" not in target:
                assert (await there.call("count")).status is Status.REFUSED
            back = await visitor.post("/upstreams/resume", {"target": target})
            assert back.headers["location"] == "/upstreams?done=resumed"
        assert (await there.call("count")).status is Status.DONE
        assert (await visitor.post("/upstreams/resume", {"target": "all"})).status == 409
        assert (await visitor.post("/upstreams/halt", {"target": "nothing", "note": "x"})).status == 404


@requirement("PPL-4", "PPL-2")
async def test_who_is_no_operator_sees_what_is_stopped_and_can_stop_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        await there.gateway.halt(there.person("ana"), "office.send", "the mail is late")
        otto, eve = await there.browser("otto"), await there.browser("eve")
        page = await otto.get("/upstreams")
        assert "the mail is late" in text(page)
        assert '<form method="post" action="/upstreams' not in page.body.decode()
        assert "the mail is late" not in text(await eve.get("/upstreams"))
        for path, said in (
            ("halt", {"target": "all"}),
            ("resume", {"target": "office.send"}),
            ("office/restart", {}),
        ):
            assert (await otto.post(f"/upstreams/{path}", said)).status == 403
        assert "office.send" in await there.gateway.halts()


@requirement("PPL-4", "AUD-2", "PPL-2")
async def test_an_mcp_server_is_connected_to_anew_and_that_is_on_record(tmp_path: Path) -> None:
    async with fronted(Depot(), tmp_path) as gateway:
        ben, ana = await signed_in(gateway, "ben", "ana")
        page = await ben.get("/upstreams")
        assert "depot connected" in text(page)
        assert "Restart" in text(page)
        assert "Restart" not in text(await ana.get("/upstreams"))
        upstream = gateway._runtime.upstreams["depot"]
        before = upstream._owner.live  # type: ignore[attr-defined]
        assert (await ana.post("/upstreams/depot/restart")).status == 403
        assert (await ben.post("/upstreams/nothing/restart")).status == 404
        done = await ben.post("/upstreams/depot/restart")
        assert done.headers["location"] == "/upstreams?done=restarted"
        await until(lambda: upstream.state == "ready")  # type: ignore[attr-defined]
        assert upstream._owner.live is not before  # type: ignore[attr-defined]
        ana_herself = gateway.identity.authenticate({"x-holdfast-user": "ana"})
        seen = await gateway.call("depot.stock", {"item": "nail"}, principal=ana_herself)
        assert seen.status is Status.DONE
        log = await ben.get("/audit?of=gateway")
        assert "restart" in text(log)
        assert "depot" in text(log)


@requirement("PPL-4")
async def test_what_runs_in_the_gateway_itself_cannot_be_started_anew(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        said = await (await there.browser("ana")).post("/upstreams/office/restart")
        assert said.status == 409
        assert "runs in this process" in text(said)


@requirement("APR-7", "PPL-2")
async def test_a_channel_that_nobody_hears_is_seen_by_operators(tmp_path: Path) -> None:
    (tmp_path / "hook.key").write_text("whsec_" + "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3I=")
    webhook = {"url": "http://127.0.0.1:9/told", "secret": "${secret:hook}"}
    more = {
        "channels": {"chat": {"webhook": webhook}},
        "secrets": {"hook": {"file": str(tmp_path / "hook.key")}},
    }
    async with world(tmp_path, **more) as there:
        assert (await there.call("send", to="x")).status is Status.HELD
        ana = await there.browser("ana")
        async with asyncio.timeout(FELT_S):
            while "webhook: 0 sent, 1 waiting cannot connect" not in text(await ana.get("/upstreams")):
                await pause()
        assert "chat" not in text(await (await there.browser("otto")).get("/upstreams"))
