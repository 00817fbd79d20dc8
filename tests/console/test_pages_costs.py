"""*Budgets and costs*: is it told what is left and what was spent, to whom it concerns?"""

from pathlib import Path

from tests.console.office import cells, harmless, world
from tests.console.visitor import text
from tests.requirements import requirement

BUDGETS = {
    "budgets": [{"per": "tenant", "kind": "write", "calls": 4}, {"per": "task", "kind": "read", "calls": 10}]
}


@requirement("PPL-2")
async def test_empty_pages_say_what_brings_figures_here(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        page = await (await there.browser("ana")).get("/costs")
        assert harmless(page)
        assert "No budget was drawn on" in text(page)
        assert "Nothing was spent" in text(page)


@requirement("PPL-2")
async def test_spending_adds_up_by_day_tool_task_part_and_caller(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        for task in ("tidy", "tidy", "sort"):
            await there.call("count", task=task)
        await there.call("count", by="eve")
        page = await (await there.browser("ana")).get("/costs?days=7")
        told = text(page)
        assert harmless(page)
        assert cells(page, "Cost") == ["1.00 USD"]
        assert cells(page, "Calls") == ["4"]
        for line in ("office.count 1.00 USD", "tidy 0.5000 USD", "external api 1.00 USD", "otto 0.7500 USD"):
            assert line in told, line
        own = text(await (await there.browser("eve")).get("/costs"))
        assert "0.2500 USD" in own
        assert "tidy" not in own
        assert "Nothing was spent" in text(await (await there.browser("xena")).get("/costs"))


@requirement("PPL-2")
async def test_budgets_show_what_is_used_and_left(tmp_path: Path) -> None:
    async with world(tmp_path, limits=BUDGETS) as there:
        for n in range(3):
            await there.call("add", text=str(n))
        page = await (await there.browser("ana")).get("/costs")
        assert cells(page, "Of")[0] == "tenant default"
        assert cells(page, "Left")[0] == "1"
        assert cells(page, "Bounds")[0] == "4 calls"
        assert 'width="75.0"' in page.body.decode()
