"""Can somebody at a terminal watch calls as they happen?"""

import json

from tests.cli.conftest import Holdfast
from tests.cli.terminal import at_terminal
from tests.requirements import requirement

READ = ("call", "desk.get_ticket", "--args", '{"number": 1}')
FAIL = ("call", "desk.get_ticket", "--args", '{"number": 101}')
CLOSE_ALL = (
    "call",
    "desk.close_all",
    "--args",
    '{"older_than_days": 9}',
    "--key",
    "k1",
    "--release",
    "gateway",
)


@requirement("PPL-1")
def test_calls_are_shown_as_they_happen_until_ctrl_c(holdfast: Holdfast) -> None:
    holdfast(*READ)
    with at_terminal("watch", "--as", "ana") as terminal:
        terminal.until("waiting for calls")
        holdfast(*FAIL)
        terminal.until("failed", "desk.get_ticket", "SEMANTIC_INVALIDITY")
        assert "done" not in terminal.said  # that was before
        id = holdfast(*CLOSE_ALL, "--json").json["approval"]["id"]
        terminal.until("held", "desk.close_all", id)
        for person in ("ana", "ben"):
            holdfast("approve", id, "--as", person, "--yes")
        assert "desk.close_all" in terminal.until("done")
        terminal.interrupt()
        assert terminal.ended() == 0
    assert "Traceback" not in terminal.said
    assert terminal.said.count("failed") == 1


@requirement("PPL-1", "NAM-1")
def test_the_last_calls_are_shown_to_programs_one_a_line(holdfast: Holdfast) -> None:
    assert holdfast("watch", "--once", "5", "--as", "ana").out == ""
    for command in (READ, FAIL, CLOSE_ALL):
        holdfast(*command)
    lines = holdfast("watch", "--once", "2", "--json", "--as", "ana").out.splitlines()
    told = [json.loads(line) for line in lines]
    assert [(row["tool"], row["status"]) for row in told] == [
        ("desk.get_ticket", "failed"),
        ("desk.close_all", "held"),
    ]
    assert len(holdfast("watch", "--once", "9", "--as", "ana").out.splitlines()) == 3


@requirement("PPL-1")
def test_only_what_is_wanted_is_shown(holdfast: Holdfast) -> None:
    for command in (READ, FAIL, CLOSE_ALL):
        holdfast(*command)

    def told(*options: str) -> list[str]:
        lines = holdfast("watch", "--once", "9", "--json", "--as", "ana", *options).out.splitlines()
        return [json.loads(line)["status"] for line in lines]

    assert told("--tool", "desk.get_ticket") == ["done", "failed"]
    assert told("--tool", "desk.*", "--status", "held") == ["held"]
    assert told("--caller", "nobody") == []
    ended = holdfast("watch", "--status", "finished")
    assert (ended.code, "take one of" in ended.err) == (2, True)


@requirement("PPL-1")
def test_whoever_is_no_operator_sees_their_own_calls(holdfast: Holdfast) -> None:
    holdfast(*READ)
    holdfast(*READ, "--as", "eve")
    lines = holdfast("watch", "--once", "9", "--json", "--as", "eve").out.splitlines()
    assert [json.loads(line)["caller"] for line in lines] == ["eve"]
