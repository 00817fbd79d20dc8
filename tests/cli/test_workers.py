"""Do several workers serve as one, outlive each other, and end without dropping a call?"""

import contextlib
import http.client
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Holdfast
from tests.cli.crew import CONFIG, Gate, crew
from tests.cli.desk_tools import effects
from tests.polling import rest
from tests.requirements import requirement

EITHER = pytest.mark.parametrize("workers", [None, 2], ids=["alone", "two workers"])


@pytest.fixture
def gate(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    (desk / "holdfast.yaml").write_text(CONFIG)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("DESK_GATE", str(listener.getsockname()[1]))
        listener.settimeout(60)
        one = Gate(listener)
        yield one
        one.close()


@requirement("NAM-1")
def test_several_workers_share_a_port_a_store_and_one_welcome(gate: Gate) -> None:
    with crew(workers=3) as one:
        assert len(set(one.pids())) == 3
        assert one.said.count("is listening on") == 1
        # Ctrl-C at a terminal is for the parent, which passes it on: twice would cut calls short.
        assert os.getpgid(one.process.pid) not in {os.getpgid(pid) for pid in one.pids()}
        assert one.call("close_ticket", 1, "k1")[1]["replayed"] is False
        assert all(one.call("close_ticket", 1, "k1")[1]["replayed"] for _ in range(20))
        assert one.ask("GET", "/ready")[0] == 200
    assert effects() == ["close 1"]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="tells whose a connection is")
def test_connections_that_stay_are_shared_by_all_workers(gate: Gate) -> None:
    with crew(workers=2) as one, contextlib.ExitStack() as stack:
        port = int(one.address.split(":")[1])
        for _ in range(40):
            connection = http.client.HTTPConnection(one.address, timeout=60)
            stack.callback(connection.close)
            connection.request("GET", "/ready")
            assert connection.getresponse().read()
        have = [connections(pid, port) for pid in one.pids()]
    assert sum(have) == 40
    assert min(have) >= 10


LOOK = """
import os

from holdfast import Effect, tool

SEEN = [name for name in os.environ if name.startswith("HOLDFAST_TALLY")]
OPEN = [one for one in range(3, 100) if os.path.exists(f"/dev/fd/{one}") and os.get_inheritable(one)]


@tool(effect=Effect.READ_ONLY)
async def look() -> list[str]:
    \"\"\"What a program would be given that starts when this is imported.\"\"\"
    return [*SEEN, *map(str, OPEN)]
"""


def test_what_a_worker_has_from_its_parent_is_not_for_the_programs_that_tools_start(desk: Path) -> None:
    (desk / "look.py").write_text(LOOK)
    (desk / "holdfast.yaml").write_text(CONFIG.replace("tests.cli.slow_tools:TOOLS", "look:look"))
    with crew(workers=2) as one:
        status, answer = one.ask("POST", "/v1/calls", {"tool": "desk.look", "arguments": {}})
    assert (status, answer["data"]) == (200, [])


def connections(pid: int, port: int) -> int:
    """How many to this port the process has accepted."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    theirs = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"}
    found = 0
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += os.readlink(one) in theirs
    return found


@EITHER
@requirement("IDM-5", "NAM-1")
def test_a_write_under_way_when_told_to_stop_finishes_and_its_client_is_answered(
    gate: Gate, holdfast: Holdfast, workers: int | None
) -> None:
    with crew(workers=workers) as one:
        calling = one.begin("move_ticket", 1, "k1")
        tool = gate.wait()
        one.process.send_signal(signal.SIGTERM)
        one.until_refused()
        tool.sendall(b"go on\n")
        status, seen = calling.result(60)
        assert (status, seen["status"]) == (200, "done")
        one.rest()
        assert one.process.returncode == 0
    found = holdfast("call", "desk.move_ticket", "--args", '{"number": 1}', "--key", "k1", "--json")
    assert (found.json["replayed"], found.json["call_id"]) == (True, seen["call_id"])
    assert effects() == ["move 1"]


@pytest.mark.parametrize(("workers", "tool"), [(2, "move_ticket"), (None, "haul_ticket")])
@requirement("IDM-5", "NAM-1")
def test_a_write_that_is_not_over_in_time_is_told_unknown_and_left_to_others(
    gate: Gate, holdfast: Holdfast, workers: int | None, tool: str
) -> None:
    with crew("--grace", "0.1", workers=workers) as one:
        calling = one.begin(tool, 1, "k1")
        waiting = gate.wait()
        one.process.send_signal(signal.SIGTERM)
        status, seen = calling.result(60)
        assert (status, seen["status"], seen["code"]) == (504, "unknown", "OUTCOME_UNKNOWN")
        assert seen["call_id"] in seen["message"]
        assert "another process settles them" in one.rest()
        assert one.process.returncode == 0
        waiting.close()
    again = holdfast("call", f"desk.{tool}", "--args", '{"number": 1}', "--key", "k1", "--json")
    assert (again.json["status"], again.json["call_id"]) == ("unknown", seen["call_id"])
    assert effects() == []


@requirement("IDM-5", "NAM-1")
def test_a_read_that_is_not_over_in_time_is_told_to_come_again(gate: Gate) -> None:
    with crew("--grace", "0.1") as one:
        calling = one.begin("watch_ticket", 1)
        gate.wait()
        one.process.send_signal(signal.SIGTERM)
        status, seen = calling.result(60)
        assert (status, seen["status"], seen["code"]) == (503, "refused", "TOOL_UNAVAILABLE")
        assert seen["remedy"]["retryable"] is True
        one.rest()
        assert one.process.returncode == 0


@requirement("NAM-1")
def test_the_second_signal_waits_for_nothing_and_still_answers(gate: Gate) -> None:
    with crew("--grace", "3600") as one:
        calling = one.begin("haul_ticket", 1, "k1")
        gate.wait()
        one.process.send_signal(signal.SIGTERM)
        one.until_refused()
        one.process.send_signal(signal.SIGINT)
        assert calling.result(60)[1]["status"] == "unknown"
        one.rest()
        assert one.process.returncode == 0


@requirement("TEL-6", "NAM-1")
def test_a_load_balancer_is_told_before_connections_are_refused(gate: Gate) -> None:
    with crew("--notice", "3600") as one:
        one.process.send_signal(signal.SIGTERM)
        while (answered := one.ask("GET", "/ready"))[0] == 200:
            rest()
        status, said = answered
        assert (status, said["ready"], said["draining"], said["store"]) == (503, False, True, "ok")
        assert one.ask("GET", "/health")[0] == 200
        assert one.call("close_ticket", 1, "k1")[1]["status"] == "done"
        one.process.send_signal(signal.SIGTERM)
        one.rest()
        assert one.process.returncode == 0


@requirement("NAM-1")
def test_a_worker_that_is_killed_is_started_again(gate: Gate) -> None:
    with crew() as one:
        first, second = one.pids()
        os.kill(first, signal.SIGKILL)
        assert f"(process {first}) was killed by SIGKILL; it is started again" in one.until(str(first))
        one.until("serves")
        os.kill(second, signal.SIGSTOP)  # so that it is the new one that answers
        assert one.call("close_ticket", 1, "k1")[1]["status"] == "done"
        os.kill(second, signal.SIGCONT)


@requirement("IDM-5", "NAM-1")
def test_what_a_killed_worker_left_is_settled_by_the_others(gate: Gate) -> None:
    with crew() as one:
        calling = one.begin("move_ticket", 1, "k1")
        gate.wait()
        for pid in one.pids():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            calling.result(60)
        one.until("serves")
        while (seen := one.call("move_ticket", 1, "k1"))[1]["code"] == "KEY_IN_USE":
            rest()
        assert seen[1]["status"] == "unknown"
    assert effects() == []


@requirement("NAM-1", "PPL-4")
def test_replacing_the_workers_under_load_loses_no_call(gate: Gate) -> None:
    with crew() as one:
        before, over, answers = set(one.pids()), threading.Event(), []

        def calls(lane: int) -> None:
            number = 0
            while not over.is_set():
                number += 1
                answers.append(one.call("close_ticket", number, f"{lane}-{number}"))

        lanes = [threading.Thread(target=calls, args=(lane,)) for lane in range(3)]
        for lane in lanes:
            lane.start()
        slow = one.begin("move_ticket", 7, "slow")
        tool = gate.wait()
        one.process.send_signal(signal.SIGHUP)
        one.until("serves")
        tool.sendall(b"go on\n")
        one.until("every worker is replaced")
        over.set()
        for lane in lanes:
            lane.join()
        assert slow.result(60)[1]["status"] == "done"
        fine = {"status": "done", "replayed": False}
        assert [told for told in answers if told[0] != 200 or not fine.items() <= told[1].items()] == []
        assert before.isdisjoint(one.pids()[2:])
        assert len(effects()) == len(answers) + 1


@requirement("PPL-4")
def test_a_configuration_that_cannot_be_used_leaves_the_old_workers_serving(gate: Gate, desk: Path) -> None:
    with crew() as one:
        (desk / "holdfast.yaml").write_text("upstreams: 7")
        one.process.send_signal(signal.SIGHUP)
        assert "ended with 2 before it served; those that serve stay" in one.until("before it served")
        assert one.call("close_ticket", 1, "k1")[1]["status"] == "done"
        (desk / "holdfast.yaml").write_text(CONFIG)
        one.process.send_signal(signal.SIGHUP)
        one.until("every worker is replaced")
        assert one.call("close_ticket", 1, "k1")[1]["replayed"] is True


@requirement("NAM-1")
def test_workers_drain_and_go_when_their_parent_is_killed(gate: Gate, holdfast: Holdfast) -> None:
    with crew() as one:
        calling = one.begin("move_ticket", 1, "k1")
        tool = gate.wait()
        one.process.kill()
        one.until_refused()
        tool.sendall(b"go on\n")
        assert calling.result(60)[1]["status"] == "done"
        one.rest()  # comes back when the last worker has closed its log
    found = holdfast("call", "desk.move_ticket", "--args", '{"number": 1}', "--key", "k1", "--json")
    assert found.json["replayed"] is True


@requirement("NAM-1", "PPL-1")
def test_workers_that_cannot_start_end_the_parent_with_their_error_told_once(
    gate: Gate, desk: Path, process: Holdfast
) -> None:
    (desk / "holdfast.yaml").write_text('upstreams: {desk: {functions: "tests.cli.no_such:TOOLS"}}')
    ended = process("serve", "--port", "0", "--workers", "3")
    assert (ended.code, ended.err.count("\nerror: ") + ended.err.startswith("error: ")) == (2, 1)
    assert "no_such" in ended.err


@requirement("NAM-1")
def test_a_parent_whose_workers_keep_dying_gives_up(gate: Gate, desk: Path) -> None:
    with crew(workers=1) as one:
        (desk / "holdfast.yaml").unlink()
        os.kill(one.pids()[0], signal.SIGKILL)
        assert "giving up" in one.rest()
        assert one.process.returncode == 2
