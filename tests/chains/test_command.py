"""`holdfast chain check` tells a person, and a program, what keeps a chain from running."""

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.cli.app import run
from holdfast.cli.chain import ended
from holdfast.model.run import Run, RunState
from tests.requirements import requirement

DEMO = Path(__file__).parents[2] / "examples" / "demo"
GOOD = """
chain: look
input: {type: object, properties: {order_id: {type: string, pattern: "^o-[0-9]{4}$"}}, required: [order_id]}
steps:
  - {id: order, tool: shop.get_order, with: {order_id: =input.order_id}}
  - {id: refunds, tool: shop.order_refunds, with: {order_id: =input.order_id}}
output: {who: =order.customer}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("*.db*"))
    monkeypatch.chdir(folder)
    return folder


@requirement("CHN-1", "NAM-1")
def test_a_good_chain_is_told_to_be_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "look.yaml").write_text(GOOD)
    assert run(["chain", "check", "look.yaml"]) == 0
    told = capsys.readouterr().out
    assert "can be run  look@1.0.0" in told
    assert "READ_ONLY" in told
    assert "2 steps" in told


@requirement("CHN-1", "NAM-1")
def test_a_bad_one_ends_with_1_and_every_fault(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "look.yaml").write_text(GOOD.replace("shop.order_refunds", "shop.gone"))
    assert run(["chain", "check", "look.yaml", "--json"]) == 1
    told = orjson.loads(capsys.readouterr().out)
    assert (told["ok"], [fault["place"] for fault in told["faults"]]) == (False, ["steps[1].tool"])


MAIL = """
chain: mail
input: {type: object, properties: {order_id: {type: string, pattern: "^o-[0-9]{4}$"}}, required: [order_id]}
steps:
  - {id: order, tool: shop.get_order, with: {order_id: =input.order_id}}
  - id: mail
    tool: shop.send_mail
    with: {order_id: =input.order_id, subject: Sorry, body: We are sorry.}
"""
ORDER = ["--args", '{"order_id": "o-1001"}', "--key", "k-1"]


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return orjson.loads(capsys.readouterr().out)


@requirement("CHN-7", "NAM-1")
def test_a_chain_is_run_once_for_a_key_and_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "look.yaml").write_text(GOOD)
    assert run(["chain", "run", "look.yaml", *ORDER, "--json"]) == 0
    first = said(capsys)
    assert (first["state"], [step["state"] for step in first["steps"]]) == ("COMPLETED", ["done", "done"])
    assert run(["chain", "run", "look.yaml", *ORDER, "--json"]) == 0
    assert said(capsys) == first
    assert run(["chain", "show", first["id"]]) == 0
    assert f"completed  look@1.0.0  {first['id']}" in capsys.readouterr().out


@requirement("CHN-5", "NAM-1")
def test_a_step_that_failed_leads_to_its_call(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "look.yaml").write_text(GOOD)
    assert (
        run(["chain", "run", "look.yaml", "--args", '{"order_id": "o-9999"}', "--key", "k-1", "--json"]) == 1
    )
    told = said(capsys)
    [step] = told["steps"]
    assert (step["state"], step["tool"]) == ("failed", "shop.get_order")
    assert run(["chain", "show", told["id"]]) == 0
    shown = capsys.readouterr().out.replace("python -m holdfast", "holdfast")
    assert f"look: holdfast show {step['call_id']}" in shown
    assert run(["show", step["call_id"]]) == 0
    assert "shop.get_order" in capsys.readouterr().out


@requirement("CHN-7", "NAM-1")
def test_one_that_waits_ends_with_4_and_goes_on_when_it_is_approved(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "mail.yaml").write_text(MAIL)
    assert run(["chain", "run", "mail.yaml", *ORDER, "--json"]) == 4
    waiting = said(capsys)
    approval = waiting["waits_for"].split("'")[1]
    assert run(["approve", approval, "--note", "fine"]) == 0
    capsys.readouterr()
    assert run(["chain", "run", "mail.yaml", *ORDER, "--json"]) == 0
    assert (over := said(capsys))["id"] == waiting["id"]
    assert over["state"] == "COMPLETED"


@requirement("APR-8", "NAM-1")
def test_people_are_asked_about_all_of_it_and_nothing_runs(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "mail.yaml").write_text(MAIL)
    assert run(["chain", "run", "mail.yaml", *ORDER, "--plan", "--json"]) == 4
    planned = said(capsys)
    assert [step["tool"] for step in planned["steps"]] == ["shop.get_order", "shop.send_mail"]
    assert run(["chain", "runs", "--json"]) == 0
    assert said(capsys) == {"runs": []}
    assert run(["approve", planned["approval"]["id"], "--note", "fine"]) == 0
    capsys.readouterr()
    assert run(["chain", "run", "mail.yaml", *ORDER, "--json"]) == 0
    assert said(capsys)["state"] == "COMPLETED"


@requirement("CHN-7", "NAM-1")
def test_who_looks_at_a_run_that_waits_is_told_what_to_do(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "mail.yaml").write_text(MAIL)
    assert run(["chain", "run", "mail.yaml", *ORDER]) == 4
    told = capsys.readouterr().out
    approval = told.partition("approval '")[2].partition("'")[0]
    assert f"next: holdfast approvals {approval}" in told.replace("python -m holdfast", "holdfast")
    assert run(["approve", approval, "--note", "fine"]) == 0
    answered = capsys.readouterr().out
    assert "its run goes on where 'serve' runs" in answered
    assert "chain resume run_" in answered
    assert "calls again with key" not in answered


@requirement("CHN-7", "NAM-1")
@pytest.mark.parametrize(
    ("state", "waits_for", "code"),
    [
        (RunState.RUNNING, "", 5),
        (RunState.RUNNING, "the job of call 'call_1' of step 'build'", 5),
        (RunState.RUNNING, "approval 'apr_1' of step 'mail'", 4),
        (RunState.COMPENSATION_FAILED, "a person: step 'mail~undo'", 4),
        (RunState.COMPENSATED, "", 1),
        (RunState.COMPLETED, "", 0),
    ],
)
def test_a_run_that_goes_on_by_itself_has_not_failed(state: RunState, waits_for: str, code: int) -> None:
    stands = Run(
        tenant="default",
        id="run_1",
        chain="look",
        version="1.0.0",
        declared={},
        input={},
        principal="ana",
        wanted_by={},
        state=state,
        waits_for=waits_for,
    )
    assert ended(stands) == code


@requirement("CHN-7", "NAM-1")
def test_an_unknown_run_and_a_file_that_is_no_yaml_say_what_to_do(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["chain", "show", "run_nix"]) == 3
    assert "'holdfast chain runs' lists them" in capsys.readouterr().err
    (place / "torn.yaml").write_text("chain: x\nsteps:\n  - {id: a, tool: shop.get_order\n")
    assert run(["chain", "check", "torn.yaml"]) == 2
    assert "not valid YAML, line 4: expected ',' or '}'" in capsys.readouterr().err


@requirement("CHN-1", "NAM-1")
def test_doctor_tells_of_chains_before_it_gives_advice(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "chains").mkdir()
    (place / "chains" / "look.yaml").write_text(GOOD.replace("shop.order_refunds", "shop.gone"))
    config = place / "holdfast.yaml"
    advised = "fallbacks: {refunding: {tools: [shop.refund], then: person}}"  # it lacks the tag
    config.write_text(f"{config.read_text()}\nchains: chains\n{advised}\n")
    run(["doctor", "--json"])
    about = [one["about"] for one in said(capsys)["findings"]]
    assert about.index("chain") < about.index("contract")
