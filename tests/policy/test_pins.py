"""Does a policy that was written for one contract hold for that contract alone?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Effect, Gateway, Principal, Status, testing, tool
from holdfast.catalog.adapt import offers
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.model.vocabulary import Environment
from holdfast.policy import CedarPolicy
from holdfast.policy.examine import Examination, examine
from holdfast.system import RandomIds
from tests.policy.case import bundle_of, written
from tests.requirements import requirement

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)


def look(says: str = "Look at a thing.") -> Any:
    async def look(thing: str) -> dict[str, str]:
        return {"thing": thing}

    look.__doc__ = says
    return tool(effect=Effect.READ_ONLY)(look)


def other() -> Any:
    @tool(effect=Effect.READ_ONLY)
    async def other(thing: str) -> dict[str, str]:
        """Look at another thing."""
        return {"thing": thing}

    return other


BEFORE, AFTER = look(), look("Look at a thing, and tell everybody.")


def policy(text: str, *tools: Any, upstream: str = "shop") -> CedarPolicy:
    catalog = MemoryCatalog()
    catalog.register(offers(upstream, tools))
    return CedarPolicy(bundle_of(text), catalog, RandomIds())


def seen(text: str, *tools: Any) -> Examination:
    made = policy(text, *tools)
    assert made.report.problems == ()
    return examine(made, Environment.DEV)


def pin(own: Any) -> str:
    """What `holdfast policy check --pin` prints for a policy about it."""
    text = '@id("x") permit (principal, action == Action::"shop.look", resource);'
    [(_, [found])] = seen(text, own).pins
    return str(found)


PIN = pin(BEFORE)


def permit(pins: str = PIN, scope: str = 'action == Action::"shop.look"') -> str:
    return f'@id("p") @contract("{pins}") permit (principal, {scope}, resource);\n'


def forbid(pins: str = PIN, condition: str = 'context.args.thing == "secret"') -> str:
    return (
        f'@id("f") @contract("{pins}") forbid (principal, action == Action::"shop.look", resource) '
        f"when {{ {condition} }};\n"
    )


ALL = '@id("all") permit (principal, action, resource);\n'


@asynccontextmanager
async def shop(folder: Path, text: str, *tools: Any) -> AsyncIterator[Gateway]:
    config = {"policies": str(written(folder / "rules", text))}
    async with testing.gateway(*tools, namespace="shop", config=config) as gateway:
        yield gateway


async def asked(folder: Path, text: str, own: Any, thing: str = "a") -> tuple[Status, str]:
    async with shop(folder, text, own) as gateway:
        said = await gateway.call("shop.look", {"thing": thing}, principal=ANA)
    assert said.status is Status.DONE or said.code is Code.POLICY_VIOLATION
    return said.status, said.message or ""


@requirement("REG-8", "POL-1")
async def test_a_pinned_permit_holds_for_its_contract_and_not_for_a_changed_one(tmp_path: Path) -> None:
    assert (await asked(tmp_path, permit(), BEFORE))[0] is Status.DONE
    status, message = await asked(tmp_path, permit(), AFTER)
    assert status is Status.REFUSED
    assert "'p' does, for another contract of 'shop.look' only" in message


@requirement("REG-8", "POL-1")
async def test_a_pinned_permit_holds_for_its_upstream_alone(tmp_path: Path) -> None:
    elsewhere = PIN.replace("shop/", "other/", 1)
    assert (await asked(tmp_path, permit(elsewhere), BEFORE))[0] is Status.REFUSED


@requirement("REG-8", "POL-1")
async def test_a_pinned_forbid_that_fits_no_longer_shuts_the_tool(tmp_path: Path) -> None:
    assert (await asked(tmp_path, ALL + forbid(), BEFORE))[0] is Status.DONE
    assert (await asked(tmp_path, ALL + forbid(), BEFORE, "secret"))[0] is Status.REFUSED
    status, message = await asked(tmp_path, ALL + forbid(), AFTER)
    assert status is Status.REFUSED
    assert "'f' was written for another contract of 'shop.look'" in message


@requirement("REG-8")
async def test_other_permits_still_hold_beside_one_that_does_not_fit(tmp_path: Path) -> None:
    assert (await asked(tmp_path, ALL + permit(), AFTER))[0] is Status.DONE


@requirement("REG-8")
def test_check_says_what_has_changed_since_a_policy_was_pinned() -> None:
    assert seen(permit(), BEFORE).findings == ()
    [changed] = seen(permit(), AFTER).findings
    assert (changed.kind, changed.level, changed.place.column) == ("pin", "warning", 11)
    assert "'p' does not hold: no contract of 'shop.look' is sha256:" in changed.text
    assert "any more, version 1.0.0 has sha256:" in changed.text
    [moved] = seen(permit(PIN.replace("shop/", "other/", 1)), BEFORE).findings
    assert "comes from 'shop' and not from 'other'" in moved.text
    shut = [one for one in seen(ALL + forbid(), AFTER).findings if one.kind == "pin"]
    assert "'f' shuts the tool" in shut[0].text
    [gone] = [one for one in seen(permit(scope="action"), other()).findings if "no tool" in one.text]
    assert "there is no tool 'shop.look' here" in gone.text


@requirement("REG-8")
def test_check_says_which_tools_in_its_scope_a_pin_leaves_out() -> None:
    [note] = [one for one in seen(permit(scope="action"), BEFORE, other()).findings if one.kind == "pin"]
    assert (note.level, note.text) == (
        "note",
        "'p' does not hold for 'shop.other': its '@contract' does not name them",
    )


@requirement("REG-8")
@pytest.mark.parametrize("text", ["shop.look", "shop/shop.look", "shop/shop.look sha256:12", f"{PIN};{PIN}"])
def test_a_pin_that_cannot_be_read_is_a_problem(text: str) -> None:
    [problem] = policy(permit(text), BEFORE).report.problems
    assert "names no contract; write 'UPSTREAM/TOOL sha256:...'" in problem.text


@requirement("REG-8")
async def test_each_version_of_a_tool_is_judged_by_its_own_contract(tmp_path: Path) -> None:
    @tool(effect=Effect.READ_ONLY, name="look", version="1.1.0")
    async def newer(thing: str) -> dict[str, str]:
        """Look at a thing, newly."""
        return {"thing": thing}

    async with shop(tmp_path, permit(), BEFORE, newer) as gateway:
        old = await gateway.call("shop.look", {"thing": "a"}, principal=ANA, version="1.0.0")
        new = await gateway.call("shop.look", {"thing": "a"}, principal=ANA, version="1.1.0")
        again = await gateway.call("shop.look", {"thing": "a"}, principal=ANA, version="1.0.0")
    assert (old.status, new.status, again.status) == (Status.DONE, Status.REFUSED, Status.DONE)
