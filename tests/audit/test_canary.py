"""Do a secret and a person's name, put in wherever one can, stay out of the log and of every file?"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import requirement

SECRET = "canary-s3cr3t-77"
PERSON = "ada.canary@example.org"

TOOLS = '''
import os
from typing import Annotated

from pydantic import Field

from holdfast import Effect, NoEffect, Undo, tool

Secret = Annotated[str, Field(json_schema_extra={"x-sensitivity": "secret"})]
Person = Annotated[str, Field(json_schema_extra={"x-sensitivity": "pii"})]
WRITE = dict(undo=Undo.EXACT, manifest=[("passwords", "UPDATE", "one")], idempotency="none")


@tool(effect=Effect.LOW_RISK_INTERNAL, **WRITE)
async def store(password: Secret, owner: Person, how: str) -> dict[str, bool]:
    """Store a password, or fail to in some way."""
    if how == "raise":
        raise RuntimeError(f"upstream said: password={password!r} of {owner} is too short")
    if how == "url":
        raise ConnectionError(f"POST https://vault.example/?owner={owner}&token={password}")
    if how == "environment":
        raise RuntimeError("cannot log in with password=" + os.environ["VAULT_PASSWORD"])
    if how == "no_effect":
        raise NoEffect(f"{owner} has used {password} before")
    return {"stored": True}


@tool(effect=Effect.MEDIUM_RISK_WRITE, floor="operator", **WRITE)
async def reset(password: Secret, owner: Person) -> dict[str, bool]:
    """Reset a password, with an operator's consent."""
    return {"reset": True}


TOOLS = [store, reset]
'''

CONFIG = """
store: sqlite:///vault.db
upstreams: {vault: {functions: "vault_tools:TOOLS"}}
auth:
  people:
    olga: {roles: [operator], approver_secret: "${APPROVER}"}
telemetry: {logs: json, level: debug}
"""


class Vault:
    """A folder with a configuration, and the command line in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = ""
        (folder / "holdfast.yaml").write_text(CONFIG)
        (folder / "vault_tools.py").write_text(TOOLS)

    def run(self, *words: str) -> str:
        """The command's own output goes to whoever gave the values; all of stderr must be clean."""
        environ = {
            **os.environ,
            "APPROVER": SECRET,
            "VAULT_PASSWORD": SECRET,
            "HOLDFAST_APPROVER_SECRET": SECRET,
        }
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.said += done.stdout + done.stderr
        return done.stdout

    def store(self, how: str) -> None:
        arguments = f'{{"password": "{SECRET}", "owner": "{PERSON}", "how": "{how}"}}'
        self.run("call", "vault.store", "--args", arguments, "--key", how)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    vault = Vault(tmp_path_factory.mktemp("vault"))
    for how in ("well", "raise", "url", "environment", "no_effect"):
        vault.store(how)
    vault.run("call", "vault.store", "--args", f'{{"password": ["{SECRET}"]}}', "--key", "refused")
    vault.run(
        "call", "vault.reset", "--args", f'{{"password": "{SECRET}", "owner": "{PERSON}"}}', "--key", "held"
    )
    vault.run("audit", "export", "--output", "log.jsonl")
    return vault


@requirement("CON-6", "AUD-1")
def test_the_commands_did_what_they_were_asked_to(vault: Vault) -> None:
    assert "held  vault.reset" in vault.said
    assert '"stored": true' in vault.said
    assert "[secret]" in vault.said  # the logs told of the failures, and hid what they were about
    assert len((vault.folder / "log.jsonl").read_text().splitlines()) > 10


@requirement("CON-6", "LIF-5")
@pytest.mark.parametrize("canary", [SECRET, PERSON])
def test_nothing_printed_or_logged_shows_it(vault: Vault, canary: str) -> None:
    assert canary not in vault.said


@requirement("CON-6", "AUD-1")
@pytest.mark.parametrize("canary", [SECRET, PERSON])
def test_no_file_holds_it_neither_export_nor_database_nor_its_log(vault: Vault, canary: str) -> None:
    files = [file for file in vault.folder.rglob("*") if file.is_file() and file.suffix != ".py"]
    assert {"vault.db", "log.jsonl", "vault.db.keys", "vault.db.checkpoints"} <= {file.name for file in files}
    assert [file.name for file in files if canary.encode() in file.read_bytes()] == []
