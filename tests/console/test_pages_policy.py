"""*Policy*: is it shown what is in force, what others would change, and put in force only what was shown?"""

from pathlib import Path

from holdfast.model.observation import Status
from tests.console.office import HOSTILE, harmless, over_socket, world
from tests.console.visitor import fields, text
from tests.requirements import requirement

OPEN = '@id("open")\n@reason("everything")\npermit (principal, action, resource);\n'
CLOSED = (
    OPEN
    + '@id("no-counting")\n@reason("nobody counts")\n'
    + 'forbid (principal, action == Action::"office.count", resource);\n'
)


@requirement("PPL-2")
async def test_only_operators_read_and_try_policies(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        otto = await there.browser("otto")
        page = await otto.get("/policy")
        assert "in force: starter/" in text(page)
        assert "starter.reads" not in text(page)
        said = {"file": "a.cedar", "text": OPEN, "name": "console"}
        for path in ("try", "promote", "rollback"):
            answer = await otto.post(f"/policy/{path}", {**said, "version": there.gateway.policies.version})
            assert answer.status == 403, path
        ana = text(await (await there.browser("ana")).get("/policy"))
        assert "the starter policy is in force" in ana
        assert "Nothing was promoted yet" in ana
        assert "starter.reads" in ana


@requirement("POL-8", "PPL-2")
async def test_what_would_flip_is_shown_before_it_is_put_in_force(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        for _ in range(3):
            await there.call("count")
        visitor = await there.browser("ana")
        tried = {
            "name": "console",
            "file": "a.cedar",
            "text": CLOSED.replace("\n", "\r\n"),
            "days": "1",
            "against": "then",
        }
        page = await visitor.post("/policy/try", tried)
        assert harmless(page)
        assert "3 decisions would change" in text(page)
        assert "now denied" in text(page)
        assert "nobody counts" in text(page)
        said = {**tried, **fields(page, "version", "flips", "accept"), "note": "less counting"}
        wrong = await visitor.post("/policy/promote", {**said, "version": "console/0"})
        assert wrong.status == 409
        assert "not the policies whose report was shown" in text(wrong)
        await there.call("count")
        stale = await visitor.post("/policy/promote", said)
        assert stale.status == 409
        assert "the report is another one now" in text(stale)
        again = await visitor.post("/policy/try", tried)
        done = await visitor.post("/policy/promote", {**said, **fields(again, "version", "flips")})
        assert done.headers["location"] == "/policy?done=promoted"
        assert (await there.call("count")).status is Status.REFUSED
        assert "less counting" in text(await visitor.get("/policy"))
        log = text(await visitor.get("/audit?of=gateway"))
        assert "policy review" in log
        assert "promote" in log


@requirement("POL-8", "PPL-2")
async def test_a_page_that_is_open_hears_how_far_it_is_and_then_the_report(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        await there.call("count")
        visitor = await there.browser("ana")
        tried = {"name": "console", "file": "a.cedar", "text": CLOSED}
        answer = await over_socket(there, visitor, "/policy/try", tried, **{"hx-request": "true"})
        assert answer.headers["content-type"].startswith("text/event-stream")
        messages = [one for one in answer.body.decode().split("\n\n") if one]
        assert all(line.startswith("data: ") for one in messages for line in one.splitlines())
        assert "1 decision would change" in messages[-1].replace("data: ", "")
        wrong = await visitor.post("/policy/try", {**tried, "text": "permit("}, **{"hx-request": "true"})
        assert "They cannot be put in force" in text(wrong)


@requirement("PPL-2")
async def test_what_is_wrong_with_policies_is_told_with_its_place(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        visitor = await there.browser("ana")
        for bad in (
            "permit (principal, action ==",
            'permit (principal, action == Action::"office.nothing", resource);',
            HOSTILE,
        ):
            page = await visitor.post("/policy/try", {"name": "console", "file": "a.cedar", "text": bad})
            assert "They cannot be put in force" in text(page)
            assert "a.cedar:" in text(page)
            assert harmless(page)
            version = {"version": "console/0", "flips": "0"}
            assert (
                await visitor.post("/policy/promote", {"file": "a.cedar", "text": bad, **version})
            ).status == 409
        for said in (
            {"file": "a.cedar", "text": " "},
            {"file": "a.cedar", "text": OPEN, "name": "Not A Name"},
        ):
            assert (await visitor.post("/policy/try", said)).status == 400
        twice = await visitor.post("/policy/try", {"file": ["a.cedar", "a.cedar"], "text": [OPEN, OPEN]})
        assert twice.status == 400
        assert "Two files are called" in text(twice)


@requirement("PPL-4", "PPL-2")
async def test_one_goes_back_to_the_policies_before_and_not_by_an_old_page(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        visitor = await there.browser("ana")
        for policies in (OPEN, CLOSED):
            page = await visitor.post("/policy/try", {"name": "console", "file": "a.cedar", "text": policies})
            said = {
                "name": "console",
                "file": "a.cedar",
                "text": policies,
                **fields(page, "version", "flips", "accept"),
            }
            assert (await visitor.post("/policy/promote", said)).status == 303
        old = await visitor.post("/policy/rollback", {"version": "console/0", "note": "x"})
        assert old.status == 409
        done = await visitor.post(
            "/policy/rollback", {"version": there.gateway.policies.version, "note": "too much"}
        )
        assert done.headers["location"] == "/policy?done=rolled-back"
        assert (await there.call("count")).status is Status.DONE
