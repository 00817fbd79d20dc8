"""Does every recipe of the cookbook do what its page says, on a gateway with the tools it is about?"""

import importlib.util
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
import yaml

from holdfast import Code, Gateway, Observation, Principal, Status, testing
from holdfast.gateway.inspect import inspect
from tests.docs.pages import ROOT, Page
from tests.requirements import requirement

FOLDER = ROOT / "examples" / "policies"
PAGE = Page(ROOT / "docs" / "how-to" / "policy-cookbook.md")
RECIPES = sorted(path.name for path in FOLDER.iterdir() if (path / "policy.cedar").exists())
WEDNESDAY = datetime(2026, 3, 4, 12, tzinfo=UTC)
SATURDAY = datetime(2026, 3, 7, 12, tzinfo=UTC)
CHRISTMAS = datetime(2026, 12, 24, 12, tzinfo=UTC)

ORDER = ("office.find_order", {"order": "o-1"})
CUSTOMER = ("office.customer", {"order": "o-1"})
SMALL, LARGE = (("office.refund", {"order": "o-1", "amount": amount}) for amount in (50, 50.01))
DEPLOY = ("office.deploy", {"service": "shop", "version": "2"})


def mail(to: str) -> tuple[str, dict[str, str]]:
    return "office.draft_mail", {"to": to, "text": "hello"}


OURS = mail("ada@example.org")


@dataclass(frozen=True, slots=True)
class Try:
    """Calls that are made one after the other; the last one counts."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    ends: Status
    user: str = "kim"
    environment: str = "dev"
    at: datetime = WEDNESDAY
    told: bool = False
    """Whether the message is the one the page shows."""
    details: dict[str, Any] = field(default_factory=dict)
    code: Code | None = None


DONE, REFUSED, HELD = Status.DONE, Status.REFUSED, Status.HELD
OUT = {"session": "s"}
TRIES: dict[str, list[Try]] = {
    "read-only": [Try((ORDER,), DONE), Try((CUSTOMER,), DONE), Try((DEPLOY,), REFUSED, told=True)],
    "refunds": [
        Try((SMALL,), DONE),
        Try((LARGE,), HELD),
        Try((SMALL,), REFUSED, user="lee", told=True),
        Try((ORDER,), REFUSED),
    ],
    "office-hours": [
        Try((DEPLOY,), DONE),
        Try((DEPLOY,), REFUSED, at=SATURDAY, told=True),
        Try((DEPLOY,), REFUSED, at=WEDNESDAY.replace(hour=18), told=True),
        Try((ORDER,), DONE, at=SATURDAY),
    ],
    "prod-freeze": [
        Try((DEPLOY,), REFUSED, environment="prod", at=CHRISTMAS, told=True),
        Try((DEPLOY,), DONE, environment="prod"),
        Try((DEPLOY,), DONE, environment="staging", at=CHRISTMAS),
        Try((ORDER,), DONE, environment="prod", at=CHRISTMAS),
    ],
    "one-domain": [
        Try((OURS,), DONE),
        Try((mail("eve@example.com"),), REFUSED, told=True),
        Try((mail("eve@example.com,ada@example.org"),), REFUSED, told=True),
        Try((mail("eve@example.com@example.org"),), REFUSED, told=True),
        Try((ORDER,), DONE),
    ],
    "no-exfiltration": [
        Try((ORDER, OURS), DONE, details=OUT),
        Try((CUSTOMER, OURS), REFUSED, details=OUT, told=True),
        Try((CUSTOMER, ORDER), DONE, details=OUT),
    ],
    "task-budget": [
        Try((DEPLOY,), REFUSED, told=True),
        Try((DEPLOY, DEPLOY), DONE, details={"task": "t"}),
        Try((DEPLOY, DEPLOY, DEPLOY), REFUSED, details={"task": "t"}, code=Code.BUDGET_EXHAUSTED),
        Try((ORDER,), DONE),
    ],
    "break-glass": [
        Try((DEPLOY,), DONE),
        Try((DEPLOY,), HELD, user="lee", environment="prod"),
        Try((DEPLOY,), REFUSED, environment="prod", told=True),
        Try((ORDER,), DONE, environment="prod"),
    ],
}


def tools() -> ModuleType:
    spec = importlib.util.spec_from_file_location("office_of_the_cookbook", FOLDER / "office.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def config(recipe: str, environment: str) -> dict[str, Any]:
    base = yaml.safe_load((FOLDER / "holdfast.yaml").read_text())
    needs = FOLDER / recipe / "needs.yaml"
    more = yaml.safe_load(needs.read_text()) if needs.exists() else {}
    return {"auth": base["auth"], **more, "policies": str(FOLDER / recipe), "environment": environment}


def agent(user: str) -> Principal:
    return Principal(user=user, agent="assistant", scopes=frozenset({"**"}), trust=60)


def opened(recipe: str, one: Try) -> Any:
    clock = testing.ManualClock(one.at.timestamp())
    return testing.gateway(
        *tools().TOOLS, namespace="office", config=config(recipe, one.environment), clock=clock
    )


async def last(gateway: Gateway, one: Try) -> Observation:
    said = None
    for number, (tool, arguments) in enumerate(one.calls):
        said = await gateway.call(tool, arguments, principal=agent(one.user), key=f"k{number}", **one.details)
    assert said is not None
    return said


def shown(recipe: str) -> str:
    """What the page says a refused caller is told."""
    _, _, rest = PAGE.text.partition(f"```cedar examples/policies/{recipe}/policy.cedar")
    found = re.search(r"```text\n(.*?)\n```", rest, re.DOTALL)
    assert found is not None
    return found[1]


@requirement("POL-1")
@pytest.mark.parametrize(
    ("recipe", "one"),
    [
        pytest.param(name, one, id=f"{name}-{number}")
        for name, tries in TRIES.items()
        for number, one in enumerate(tries)
    ],
)
async def test_a_recipe_allows_and_refuses_what_its_page_says(recipe: str, one: Try) -> None:
    async with opened(recipe, one) as gateway:
        said = await last(gateway, one)
    assert said.status is one.ends, said.message
    if one.told:
        assert said.message == shown(recipe)
    if one.code is not None:
        assert said.code is one.code


@requirement("POL-1")
def test_every_recipe_is_tried_and_stands_on_the_page_as_it_is_in_its_folder() -> None:
    assert sorted(TRIES) == RECIPES
    on_the_page = {block.file: block.body for block in PAGE.blocks if block.file}
    in_folders = [file for file in FOLDER.glob("*/*") if file.suffix in (".cedar", ".yaml")]
    assert on_the_page == {file.relative_to(ROOT).as_posix(): file.read_text() for file in in_folders}


@requirement("POL-1")
@pytest.mark.parametrize("recipe", RECIPES)
def test_check_finds_nothing_to_warn_of_in_a_recipe_and_tells_what_every_policy_changes(recipe: str) -> None:
    seen = inspect(FOLDER / "holdfast.yaml", FOLDER / recipe)
    assert (seen.report.problems, seen.examination.findings) == ((), ())
    assert {one.policy for one in seen.examination.effects} == {one.id for one in seen.report.policies}


@requirement("POL-7")
async def test_with_a_smaller_refund_nobody_would_be_asked() -> None:
    one = Try((LARGE,), HELD)
    async with opened("refunds", one) as gateway:
        kim = Principal(user="kim", agent="assistant", scopes=frozenset({"**"}), trust=60)
        said = (await gateway.why(kim, *LARGE)).to_dict()
    assert said["unasked"] == ("with 'amount' at most 50",)


@requirement("POL-1")
async def test_the_glass_is_broken_by_two_people_and_tells_of_it() -> None:
    one = Try((DEPLOY,), HELD, user="lee", environment="prod")
    async with opened("break-glass", one) as gateway:
        held = await last(gateway, one)
        assert held.approval is not None
        for person in ("ana", "ben"):
            by = Principal(user=person, agent="local", roles=frozenset({"operator"}))
            await gateway.decide(by, held.approval.id, approve=True)
        done = await last(gateway, one)
        refused = await last(gateway, Try((DEPLOY,), REFUSED, environment="prod"))
        records = gateway._ports.ledger._shelf.records
        told = [record.body for record in records if "glass was broken" in record.body]
        tried = [record.body for record in records if "reached for prod" in record.body]
    assert (done.status, refused.status) == (DONE, REFUSED)
    assert len(told) >= 2
    assert tried
