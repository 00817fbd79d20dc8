"""Does the command line show a person what a console would, before it takes their yes?"""

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import CONFIG, Holdfast, desk, environment, holdfast
from tests.cli.desk_tools import effects
from tests.requirements import requirement

__all__ = ["desk", "holdfast"]

CLOSE_ALL = ("call", "desk.close_all", "--args", '{"older_than_days": 9}', "--key", "k1")
BUDGETS = (
    "limits: {budgets: [{per: task, kind: write, calls: 2}, {per: tenant, kind: all, calls: 9, cost: 5}]}\n"
)


def held(holdfast: Holdfast, *options: str) -> str:
    ended = holdfast(*CLOSE_ALL, *options, "--json")
    assert ended.code == 4
    return str(ended.json["approval"]["id"])


def at_terminal(*arguments: str, says: str) -> tuple[int, str]:
    """A command in a process of its own, whose person types `says`."""
    master, slave = pty.openpty()
    try:
        os.write(master, says.encode())
        ran = subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments],
            stdin=slave,
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
        )
        return ran.returncode, ran.stdout
    finally:
        os.close(master)
        os.close(slave)


@requirement("APR-1", "NAM-1")
def test_one_approval_is_shown_with_its_whole_packet(holdfast: Holdfast) -> None:
    id = held(holdfast, "--task", "clean \u202eup")
    ended = holdfast("approvals", id, "--as", "ana")
    for said in (
        id,
        "desk.close_all@1.0.0",
        "UPDATE tickets",
        "MEDIUM_RISK_WRITE",
        "open the tickets again",
        '"older_than_days": 9',
        "2 x operator",
        "none yet",
        "if you deny",
        "fingerprint",
        "no preview",
        "hidden characters were found in /task",
    ):
        assert said in ended.out, said
    assert "\u202e" not in ended.out
    told = holdfast("approvals", id, "--as", "ana", "--json").json
    assert (told["id"], told["packet"]["action"], told["level"]) == (id, "desk.close_all@1.0.0", 0)
    assert holdfast("approvals", "apr_0", "--as", "ana").code == 3
    assert holdfast("approvals", id, "--as", "eve").code == 3


@requirement("APR-1")
def test_at_a_terminal_the_packet_is_shown_and_a_yes_is_asked_for(desk: Path, holdfast: Holdfast) -> None:
    id = held(holdfast)
    code, out = at_terminal("approve", id, "--as", "ana", says="n\n")
    assert (code, "desk.close_all@1.0.0" in out, "nothing was decided" in out) == (3, True, True)
    code, out = at_terminal("approve", id, "--as", "ana", says="\n")
    assert code == 3  # silence is no yes
    code, out = at_terminal("approve", id, "--as", "ana", says="y\n")
    assert (code, "still waits for 1 x operator" in out) == (0, True)
    code, out = at_terminal("approve", id, "--as", "ben", "--yes", says="")
    assert (code, "approved" in out, "if you deny" in out) == (0, True, False)


@requirement("LIF-3", "NAM-1")
def test_a_call_may_be_released_by_the_gateway(holdfast: Holdfast) -> None:
    id = held(holdfast, "--release", "gateway")
    holdfast("approve", id, "--as", "ana")
    ended = holdfast("approve", id, "--as", "ben")
    assert (ended.code, "the gateway runs it" in ended.out) == (0, True)
    assert effects() == ["close all 9"]
    again = holdfast(*CLOSE_ALL, "--json")
    assert (again.code, again.json["replayed"], effects()) == (0, True, ["close all 9"])


@requirement("APR-4", "NAM-1")
def test_the_answer_carries_a_token_that_the_call_may_carry(holdfast: Holdfast) -> None:
    id = held(holdfast)
    holdfast("approve", id, "--as", "ana")
    token = holdfast("approve", id, "--as", "ben", "--json").json["token"]
    assert holdfast(*CLOSE_ALL, "--token", f"{token}0").code == 3
    assert holdfast(*CLOSE_ALL, "--token", token).code == 0


@requirement("APR-6", "NAM-1")
def test_a_call_may_carry_the_plan_of_its_preview(holdfast: Holdfast) -> None:
    write = ("call", "desk.close_ticket", "--args", '{"number": 1}')
    plan = holdfast(*write, "--preview", "--json").json["preview"]["plan_token"]
    other = ("call", "desk.close_ticket", "--args", '{"number": 2}', "--key", "k2", "--plan", plan)
    assert holdfast(*other).code == 3
    assert holdfast(*write, "--key", "k1", "--plan", plan).code == 0
    assert effects() == ["close 1"]


@requirement("POL-4", "NAM-1")
def test_budgets_are_listed_with_what_is_left(desk: Path, holdfast: Holdfast) -> None:
    assert "no budget is set" in holdfast("budgets").out
    (desk / "holdfast.yaml").write_text(CONFIG + BUDGETS)
    close = ("call", "desk.close_ticket", "--args", '{"number": 1}', "--task", "t")
    assert [holdfast(*close, "--key", f"k{n}").code for n in range(3)] == [0, 0, 3]
    told = holdfast("budgets", "--as", "ana", "--json").json["budgets"]
    assert [(b["per"], b["used"]["calls"], b["left"]["calls"]) for b in told] == [
        ("task", 2, 0),
        ("tenant", 2, 7),
    ]
    ended = holdfast("budgets", "--as", "ana")
    assert "9 calls, 5 cost" in ended.out
    assert ended.out.splitlines()[0].split() == ["per", "who", "kind", "limit", "used", "reserved", "left"]
