"""Does `holdfast store` copy a store that is in use, put it back, and keep every key from running twice?"""

import json
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import Holdfast
from tests.cli.desk_tools import effects
from tests.cli.test_serve import Server, serving
from tests.requirements import requirement

CALLERS = 4
APART = 1_000_000
"""Between the numbers of two callers."""


def close(server: Server, number: int) -> tuple[int, Any]:
    """Close a ticket under a key of its own."""
    body = {"tool": "desk.close_ticket", "arguments": {"number": number}, "key": f"close-{number}"}
    request = Request(
        f"{server.url}/v1/calls",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "X-Holdfast-User": "ana"},
    )
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def ready(server: Server) -> int:
    try:
        with urlopen(f"{server.url}/ready", timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


@pytest.mark.soak
@requirement("PPL-5")
def test_a_backup_taken_at_noon_under_load_and_restored_at_one_lets_no_key_run_twice(
    desk: Path, process: Holdfast
) -> None:
    done: list[int] = []
    over = threading.Event()
    with serving() as server:
        callers = [
            threading.Thread(target=_keep_closing, args=(server, n, done, over)) for n in range(CALLERS)
        ]
        for caller in callers:
            caller.start()
        taken = process("store", "backup", "noon", "--as", "ana", "--json")
        assert taken.code == 0, taken.err
        for number in range(1, 6):
            assert close(server, -number)[0] == 200
            done.append(-number)
        over.set()
        for caller in callers:
            caller.join()
        while_open = process("store", "restore", "noon", "--as", "ana")
        assert while_open.code == 1
        assert "a gateway has this store open; stop every 'holdfast' process" in while_open.err
    restored = process("store", "restore", "noon", "--as", "ana", "--json")
    assert restored.code == 0, restored.err
    assert restored.json["life"] == 2
    missing = sorted(set(done) - _known())
    assert set(missing) >= set(range(-5, 0)), "calls were made after the backup"
    with serving() as server:
        assert ready(server) == 503
        status, said = close(server, missing[0])
        assert (status, said["code"]) == (503, "TOOL_UNAVAILABLE")
        assert "holdfast store recover" in said["message"]
        recovered = process("store", "recover", "--as", "ana", "--json")
        assert recovered.code == 0, recovered.err
        assert recovered.json["operations"] == len(missing) + restored.json["unknown"]
        assert ready(server) == 200
        for number in done:
            status, said = close(server, number)
            assert (status, said["replayed"]) == (200, True), said
    assert set(Counter(effects()).values()) == {1}
    assert len(effects()) == len(done)
    verified = process("audit", "verify")
    assert verified.code == 0, verified.out


def _keep_closing(server: Server, caller: int, done: list[int], over: threading.Event) -> None:
    for number in range(caller * APART + 1, (caller + 1) * APART):
        status, said = close(server, number)
        assert (status, said["status"]) == (200, "done")
        done.append(number)
        if over.is_set():
            return


def _known() -> set[int]:
    """Which tickets the restored store knows to be closed."""
    with closing(sqlite3.connect("holdfast.db")) as store:
        return {int(key.removeprefix("close-")) for (key,) in store.execute("SELECT key FROM operation")}


@requirement("PPL-5", "NAM-1")
def test_recovering_without_anything_to_merge_ends_with_3_and_says_what_to_do(
    desk: Path, holdfast: Holdfast
) -> None:
    holdfast("store", "backup", "noon", "--as", "ana")
    holdfast("call", "desk.close_ticket", "--args", '{"number": 1}', "--key", "k1", "--as", "ana")
    restored = holdfast("store", "restore", "noon", "--as", "ana")
    assert "next: " in restored.out
    assert "store recover" in restored.out
    next(desk.glob("*.before-2")).unlink()
    refused = holdfast("store", "recover", "--as", "ana")
    assert refused.code == 3
    assert "--nothing-left --note WHY" in refused.err
    lost = holdfast("store", "recover", "--nothing-left", "--note", "the disk died", "--as", "ana")
    assert lost.code == 0
    assert "run again if they are sent again" in lost.out
    assert "desk.close_ticket" in lost.out
    verified = holdfast("audit", "verify")
    assert verified.code == 0
    assert "restarted: the log starts anew" in verified.out


@requirement("PPL-5", "NAM-1")
def test_a_backup_says_what_is_not_in_it_and_needs_an_operator(desk: Path, holdfast: Holdfast) -> None:
    taken = holdfast("store", "backup", "noon", "--as", "ana")
    assert taken.code == 0
    assert "not in it: the key files" in taken.out
    assert holdfast("store", "backup", "noon", "--as", "ana").code == 1, "nothing is overwritten"
    for command in (("backup", "other"), ("restore", "noon"), ("recover",)):
        assert holdfast("store", *command, "--as", "eve").code == 3
    lifted = holdfast("resume", "store:restored", "--as", "ana")
    assert (lifted.code, "store recover' alone" in lifted.err) == (3, True)
