"""A saga starts where it counts only if its undoings were shown to undo, or a person takes it as it is."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.chains.declared import Chain
from holdfast.chains.reading import read
from holdfast.chains.writing import written
from holdfast.gateway import Gateway
from holdfast.model.errors import ConfigError, Forbidden, HoldfastError
from holdfast.model.observation import Status
from holdfast.model.run import Inversion, RunState
from tests.chains.ledger import REAL, TWINS, person, proving
from tests.requirements import requirement

STOCK = {"read": {"tool": "shop.look", "with": {"item": "=input.item"}}, "value": "stock"}
OWED = {"read": {"tool": "shop.look", "with": {"item": "tea"}}, "value": "owed"}
RESERVE = {"id": "reserve", "tool": "shop.reserve", "with": {"item": "=input.item"}, "prove": STOCK}
CHARGE = {"id": "charge", "tool": "shop.charge", "with": {"who": "kim", "cents": 500}, "prove": OWED}
INPUT = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}


def saga(*steps: dict[str, Any], **said: Any) -> Chain:
    return read({"chain": "order", "saga": True, "input": INPUT, "steps": list(steps), **said})


async def started(gateway: Gateway, chain: Chain, key: str = "k-1") -> RunState:
    ada = person(gateway, "ada")
    run = await gateway.chains.start(ada, chain, {"item": "tea"}, key)
    return (await gateway.chains.wait(ada, run.id, 10.0)).state


@requirement("SAG-4")
async def test_a_saga_that_was_never_tried_is_not_started_and_one_that_was_is(tmp_path: Path) -> None:
    async with proving(tmp_path) as gateway:
        chain = saga(RESERVE)
        with pytest.raises(HoldfastError, match=r"nobody has shown that 'shop.release' takes step 'reserve'"):
            await started(gateway, chain)
        report = await gateway.chains.inversions.prove(person(gateway, "ola"), chain, {"item": "tea"})
        assert report.ok
        assert [one.how for one in report.tried] == [Inversion.SHOWN]
        assert (REAL[0].calls, TWINS[0].calls) == ([], ["reserve", "release", "reserve"])
        assert await started(gateway, chain) is RunState.COMPLETED
        assert REAL[0].calls == ["reserve"]


@requirement("SAG-4")
async def test_an_undoing_that_does_not_invert_is_caught_and_says_what_is_left(tmp_path: Path) -> None:
    async with proving(tmp_path) as gateway:
        chain = saga(RESERVE, CHARGE)
        report = await gateway.chains.inversions.prove(person(gateway, "ola"), chain, {"item": "tea"})
        assert [one.how for one in report.tried] == [Inversion.SHOWN, Inversion.REFUTED]
        assert report.tried[1].text == "'shop.refund' leaves 250, and it was 0"
        assert not report.ok
        with pytest.raises(
            HoldfastError, match=r"it was shown that 'shop.refund' does not take step 'charge'"
        ):
            await started(gateway, chain)
        assert REAL[0].calls == []


@requirement("SAG-4")
async def test_an_operator_accepts_what_nobody_has_shown_and_that_is_on_record(tmp_path: Path) -> None:
    async with proving(tmp_path) as gateway:
        chain, ola = saga(RESERVE, CHARGE), person(gateway, "ola")
        with pytest.raises(Forbidden):
            await gateway.chains.inversions.accept(person(gateway, "ada"), chain, "I need it")
        with pytest.raises(HoldfastError, match="say why"):
            await gateway.chains.inversions.accept(ola, chain, "  ")
        taken = await gateway.chains.inversions.accept(ola, chain, "refunds are checked by hand")
        assert [one.step.id for one in taken] == ["reserve", "charge"]
        assert await started(gateway, chain) is RunState.COMPLETED
        await gateway.tidy()
        said = [entry.record.body for entry in await gateway.log.since(ola, 0.0, -1, 100)]
        accepted = [body for body in said if '"operation":"chain_accepted"' in body]
        assert len(accepted) == 2
        assert all("refunds are checked by hand" in body and '"caller":"ola"' in body for body in accepted)


@requirement("SAG-4")
async def test_what_was_shown_holds_for_this_step_and_these_contracts_only(tmp_path: Path) -> None:
    async with proving(tmp_path) as gateway:
        ola = person(gateway, "ola")
        await gateway.chains.inversions.prove(ola, saga(RESERVE), {"item": "tea"})
        assert await started(gateway, saga(RESERVE, version="2.0.0"), "k-2") is RunState.COMPLETED
        other = {**RESERVE, "undo": {"tool": "shop.refund", "with": {"who": "kim"}}}
        with pytest.raises(HoldfastError, match=r"nobody has shown that 'shop.refund'"):
            await started(gateway, saga(other), "k-3")


@requirement("SAG-4")
async def test_a_reading_that_does_not_see_the_doing_shows_nothing_and_neither_does_none(
    tmp_path: Path,
) -> None:
    async with proving(tmp_path) as gateway:
        ola = person(gateway, "ola")
        blind = {**RESERVE, "prove": OWED}
        report = await gateway.chains.inversions.prove(ola, saga(blind), {"item": "tea"})
        assert report.tried[0].how is None
        assert "does not change when 'shop.reserve' is done" in report.tried[0].text
        without = {name: said for name, said in RESERVE.items() if name != "prove"}
        report = await gateway.chains.inversions.prove(ola, saga(without), {"item": "tea"})
        assert report.tried[0].how is None
        assert "say it with 'prove' at its step" in report.tried[0].text


@requirement("SAG-4")
async def test_steps_that_this_input_does_not_lead_to_stay_untried_and_people_are_not_needed_there(
    tmp_path: Path,
) -> None:
    async with proving(tmp_path) as gateway:
        burn = {"id": "burn", "tool": "shop.burn", "with": {"item": "=input.item"}, "prove": STOCK}
        chain = saga(burn, {**RESERVE, "when": "input.item == 'ink'"})
        report = await gateway.chains.inversions.prove(person(gateway, "ola"), chain, {"item": "tea"})
        assert [one.how for one in report.tried] == [Inversion.SHOWN, None]
        assert report.tried[1].text == "this input does not lead to it"


@requirement("SAG-4")
async def test_without_a_twin_nothing_is_tried(tmp_path: Path) -> None:
    alone = {"upstreams": {"shop": {"functions": "tests.chains.ledger:real"}}}
    async with proving(tmp_path, **alone) as gateway:
        with pytest.raises(ConfigError, match=r"'shop' has no twin; name one under 'upstreams.NAME.twin'"):
            await gateway.chains.inversions.prove(person(gateway, "ola"), saga(RESERVE), {"item": "tea"})
        assert REAL[0].calls == []


@requirement("SAG-4")
async def test_in_dev_a_saga_starts_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with proving(tmp_path, environment="dev") as gateway:
        assert await started(gateway, saga(RESERVE)) is RunState.COMPLETED
    assert "nobody has shown" in caplog.text
    assert "in staging and prod it would not start" in caplog.text


@requirement("SAG-4")
async def test_what_shows_an_effect_must_only_read(tmp_path: Path) -> None:
    async with proving(tmp_path) as gateway:
        wrong = {
            **RESERVE,
            "prove": {"read": {"tool": "shop.release", "with": {"item": "tea"}}, "value": "["},
        }
        report = gateway.chains.check(person(gateway, "ola"), saga(wrong))
        assert [fault.place for fault in report.faults] == [
            "steps[0].prove.read.tool",
            "steps[0].prove.value",
        ]


@requirement("SAG-4", "CHN-6")
async def test_called_as_a_tool_it_is_not_started_either_and_nothing_has_happened(tmp_path: Path) -> None:
    folder = tmp_path / "chains"
    folder.mkdir()
    (folder / "order.yaml").write_text(yaml.safe_dump(written(saga(RESERVE))))
    async with proving(tmp_path, chains=str(folder)) as gateway:
        ada = person(gateway, "ada")
        seen = await gateway.call("chains.order", {"item": "tea"}, principal=ada, key="k-1")
        assert seen.status in (Status.REFUSED, Status.FAILED), seen
        assert "is not started" in (seen.message or "")
        assert REAL[0].calls == []
        await gateway.chains.inversions.accept(person(gateway, "ola"), saga(RESERVE), "tried by hand")
        again = await gateway.call("chains.order", {"item": "tea"}, principal=ada, key="k-2")
        assert again.status is Status.DONE
        assert REAL[0].calls == ["reserve"]
