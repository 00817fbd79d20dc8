"""Does `holdfast audit` do what its help says?"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Holdfast
from tests.cli.conftest import desk as desk
from tests.cli.conftest import holdfast as holdfast
from tests.requirements import requirement

GET = ("call", "desk.get_ticket", "--args", '{"number": 1}', "--json")


def called(holdfast: Holdfast, *more: str) -> str:
    return str(holdfast(*GET, *more).json["call_id"])


@requirement("NAM-1", "AUD-1")
def test_a_log_is_verified_and_one_changed_letter_is_found_and_named(desk: Path, holdfast: Holdfast) -> None:
    call = called(holdfast)
    good = holdfast("audit", "verify")
    assert (good.code, good.err) == (0, "")
    assert good.out.startswith("verified: 2 records, 2 in the tree, 1 checkpoints")
    with closing(sqlite3.connect(desk / "holdfast.db")) as connection, connection:
        connection.execute("UPDATE record SET body = replace(body, 'done', 'Done') WHERE kind = 'outcome'")
    bad = holdfast("audit", "verify")
    assert bad.code == 1
    assert f"(call '{call}') was changed" in bad.out
    told = holdfast("audit", "verify", "--json").json
    assert (told["ok"], told["faults"][0]["kind"]) == (False, "changed")


@requirement("NAM-1", "AUD-4")
def test_an_export_is_verified_with_the_public_key_alone(desk: Path, holdfast: Holdfast) -> None:
    called(holdfast)
    key = holdfast("audit", "key").out.strip()
    exported = holdfast("audit", "export", "-o", "log.jsonl")
    assert exported.code == 0
    assert exported.out.startswith("exported  3 records to log.jsonl")  # that it was exported is one of them
    for file in desk.glob("holdfast.*"):
        file.rename(f"{file}.away")
    assert holdfast("audit", "verify", "--export", "log.jsonl", "--key", key).code == 0
    (desk / "key.txt").write_text(key)
    assert holdfast("audit", "verify", "--export", "log.jsonl", "--key", "key.txt").code == 0
    raw = bytearray((desk / "log.jsonl").read_bytes())
    raw[-2000] ^= 1
    (desk / "log.jsonl").write_bytes(raw)
    touched = holdfast("audit", "verify", "--export", "log.jsonl", "--key", key)
    assert touched.code == 1
    assert "tampered: " in touched.out
    assert holdfast("audit", "verify", "--export", "none.jsonl", "--key", key).code == 3


@requirement("NAM-1", "AUD-3")
def test_a_call_is_shown_as_it_was_decided(holdfast: Holdfast) -> None:
    call = called(holdfast)
    shown = holdfast("audit", "show", call)
    assert shown.code == 0
    for part in ("intent", "outcome", "status done", "permitted by", "it would come out the same now"):
        assert part in shown.out or "cannot be told" in shown.out
    told = holdfast("audit", "show", call, "--json").json
    assert [record["kind"] for record in told["records"]] == ["intent", "outcome"]
    assert holdfast("audit", "show", "call_none").code == 3


@requirement("NAM-1", "AUD-1")
def test_a_call_and_a_record_are_proved(holdfast: Holdfast) -> None:
    call = called(holdfast)
    proofs = holdfast("audit", "prove", call).json
    assert [proof["record"]["kind"] for proof in proofs] == ["intent", "outcome"]
    assert all(proof["anchored"] for proof in proofs)
    record = f"{proofs[0]['record']['writer']}:{proofs[0]['record']['seq']}"
    assert holdfast("audit", "prove", record).json == proofs[0]
    assert holdfast("audit", "prove", "call_none").code == 3


@requirement("NAM-1", "AUD-4", "CON-6")
def test_erasing_needs_to_be_meant_and_leaves_a_log_that_verifies(holdfast: Holdfast) -> None:
    called(holdfast)
    unsure = holdfast("audit", "erase", "--tenant", "default", "--as", "ana")
    assert unsure.code == 2
    assert "add --yes" in unsure.err
    assert holdfast("audit", "erase", "--tenant", "default", "--as", "eve", "--yes").code == 3
    assert holdfast("audit", "erase", "--tenant", "default", "--as", "ana", "--yes").code == 0
    assert holdfast("audit", "erase", "--tenant", "nobody", "--as", "ana", "--yes").code == 3
    assert holdfast("audit", "verify").code == 0


@requirement("AUD-2")
def test_making_a_key_is_on_record_without_the_key(desk: Path, holdfast: Holdfast) -> None:
    called(holdfast)
    made = holdfast("keys", "create", "--user", "ana", "--as", "ana")
    assert made.code == 0, made.err
    secret = made.out.split()[0]
    with closing(sqlite3.connect(desk / "holdfast.db")) as connection:
        bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM record ORDER BY at")]
    (told,) = [body for body in bodies if body["operation"] == "issue key"]
    assert (told["key"], told["person"]) == (secret.split("_")[1], "ana")
    assert secret.split("_")[2] not in json.dumps(bodies)


@requirement("DEC-4", "NAM-2")
def test_the_key_and_the_checkpoints_may_be_elsewhere(
    desk: Path, holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIT_KEY", holdfast("audit", "key", "--new").out.strip())
    (desk / "elsewhere").mkdir()
    config: dict[str, Any] = {"key": "env:AUDIT_KEY", "checkpoints": "elsewhere/notes"}
    text = (desk / "holdfast.yaml").read_text() + f"audit: {json.dumps(config)}\n"
    (desk / "holdfast.yaml").write_text(text)
    called(holdfast)
    assert holdfast("audit", "verify").code == 0
    assert (desk / "elsewhere" / "notes").exists()
    assert not (desk / "holdfast.db.audit.key").exists()
    monkeypatch.delenv("AUDIT_KEY")
    ended = holdfast(*GET)
    assert ended.code == 2
    assert "'AUDIT_KEY' is not set" in ended.err
