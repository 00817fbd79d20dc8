"""*Call*: is its story told to those who may hear it, and can it be cancelled, settled and proven?"""

import asyncio
from pathlib import Path

from holdfast.model.observation import Status
from tests.console.asking import Page
from tests.console.office import HOSTILE, harmless, world
from tests.console.visitor import text
from tests.requirements import requirement


@requirement("PPL-2")
async def test_the_page_tells_every_gate_its_time_and_how_sure_the_outcome_is(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        done = await there.call("add", text="x", task="tidy")
        page = await (await there.browser("ana")).get(f"/calls/{done.call_id}")
        said = text(page)
        assert page.status == 200
        assert harmless(page)
        assert "It was done" in said
        assert "accepted" in said
        assert "The gateway sends it once" in said
        gates = (
            "resolve",
            "authorize",
            "arguments",
            "policy",
            "limits",
            "approval",
            "claim",
            "execute",
            "verify",
        )
        places = [said.index(f" {gate} ", said.index("The way through the gates")) for gate in gates]
        assert places == sorted(places)
        assert page.body.decode().count('class="stretch') == 12
        assert "said by the tool" in said
        assert '"notes": 1' in said


@requirement("PPL-2")
async def test_a_refused_call_names_the_gate_that_decided_and_why(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        refused = await there.call("count", by="otto", word=5)
        page = await (await there.browser("otto")).get(f"/calls/{refused.call_id}")
        assert "It was refused at arguments : nothing happened" in text(page)
        assert "This gate decided." in text(page)
        assert "decided refused" in page.body.decode()


@requirement("PPL-4", "PPL-2")
async def test_a_held_call_says_who_is_asked_and_can_be_cancelled(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        held = await there.call("send", to="x")
        visitor = await there.browser("otto")
        page = await visitor.get(f"/calls/{held.call_id}")
        assert "It waits for a person" in text(page)
        assert "Still needed: 1 operator" in text(page)
        assert 'hx-trigger="every 2s"' in page.body.decode()
        answer = await visitor.post(f"/calls/{held.call_id}/cancel")
        assert (answer.status, answer.headers["location"]) == (303, f"/calls/{held.call_id}?done=cancelled")
        after = await visitor.get(answer.headers["location"])
        assert "Cancelled." in text(after)
        assert "every 2s" not in after.body.decode()
        again = await visitor.post(f"/calls/{held.call_id}/cancel")
        assert again.status == 409
        assert not there.office.sent


@requirement("PPL-4", "PPL-2")
async def test_a_running_call_is_shown_as_such_and_a_cancel_that_comes_too_late_says_so(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as there:
        running = asyncio.create_task(there.call("add_slowly", text="x"))
        await there.begun()
        visitor = await there.browser("ana")
        listed = Page(await visitor.get("/live"))
        [path] = [one["href"] for one in listed.all("a") if one.get("href", "").startswith("/calls/")]
        assert "It is running" in text(await visitor.get(path))
        too_late = await visitor.post(f"{path}/cancel")
        there.office.go_on.set()
        seen = await running
        assert (too_late.status == 409) == (seen.status is Status.DONE)
        part = await visitor.get(path, **{"hx-request": "true"})
        title = "<title>office.add_slowly · done · Holdfast</title>"
        assert part.body.decode().lstrip().startswith(f"{title}<article")
        assert "every 2s" not in part.body.decode()


@requirement("PPL-4", "PPL-2")
async def test_an_operator_settles_an_unknown_outcome_with_a_reason(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        unknown = await there.call("add_and_break", text="x")
        ana, otto, path = await there.browser("ana"), await there.browser("otto"), f"/calls/{unknown.call_id}"
        page = await ana.get(path)
        assert "Nobody knows whether it happened" in text(page)
        assert "How do you know?" in text(page)
        without = await ana.post(f"{path}/settle", {"outcome": "committed", "note": " "})
        neither = await ana.post(f"{path}/settle", {"outcome": "perhaps", "note": "x"})
        other = await otto.post(f"{path}/settle", {"outcome": "committed", "note": "x"})
        assert (without.status, neither.status, other.status) == (400, 400, 403)
        assert "How do you know?" not in text(await otto.get(path))
        done = await ana.post(f"{path}/settle", {"outcome": "committed", "note": "it lies on the desk"})
        assert done.status == 303
        told = text(await ana.get(path))
        assert "Settled" in told
        assert "it lies on the desk" in told
        assert "unknown became committed" in told


@requirement("PPL-2")
async def test_what_a_tool_says_is_text_however_odd_and_long_it_is(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        odd = await there.gateway.call(
            "office.odd", {"size": 500}, principal=there.person("otto"), task=HOSTILE[:120]
        )
        kept = await there.call("add", text=HOSTILE, task=HOSTILE)
        visitor = await there.browser("ana")
        for path in (f"/calls/{odd.call_id}", f"/calls/{kept.call_id}", "/live"):
            page = await visitor.get(path)
            assert page.status == 200
            assert harmless(page)
            assert len(page.body) < 200_000
            assert "\u202e" not in page.body.decode()
            assert "\u200b" not in page.body.decode()
        assert "⟦U+202E⟧" in (await visitor.get(f"/calls/{kept.call_id}")).body.decode()


@requirement("PPL-2")
async def test_calls_of_others_and_of_other_tenants_are_not_there(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        mine = await there.call("send", to="x")
        for name in ("eve", "xena"):
            visitor = await there.browser(name)
            for path in (f"/calls/{mine.call_id}", "/calls/call_nothing"):
                assert (await visitor.get(path)).status == 404
            acts = [await visitor.post(f"/calls/{mine.call_id}/cancel")]
            acts.append(
                await visitor.post(f"/calls/{mine.call_id}/settle", {"outcome": "committed", "note": "x"})
            )
            assert {one.status for one in acts} <= {403, 404}
        kept = await there.gateway.find(there.person("otto"), mine.call_id)
        assert kept is not None
        assert kept.status is Status.HELD


@requirement("AUD-1", "PPL-2")
async def test_each_record_of_the_call_is_verified_in_view(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        done = await there.call("add", text="x")
        await there.gateway._house.keep_log(sign_now=True)
        visitor = await there.browser("ana")
        page = Page(await visitor.get(f"/calls/{done.call_id}"))
        proofs = [one["hx-get"] for one in page.all("a") if "hx-get" in one]
        assert len(proofs) == 2
        for path in proofs:
            told = text(await visitor.get(path, **{"hx-request": "true"}))
            assert told.startswith("proof verified")
            assert "signed at" in told
        own = await (await there.browser("otto")).get(f"/calls/{done.call_id}")
        assert "On record" not in text(own)
