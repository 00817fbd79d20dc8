"""What does `holdfast serve` write to its log?"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import requirement

TOOLS = """
from typing import Annotated
from pydantic import Field
from holdfast import Effect, tool

Secret = Annotated[str, Field(json_schema_extra={"x-sensitivity": "secret"})]

@tool(effect=Effect.READ_ONLY, max_retries=0)
def leak(password: Secret) -> str:
    "Fail, and say too much."
    raise RuntimeError(f"cannot log in with {password}")
"""


def served(folder: Path, telemetry: str) -> list[str]:
    """The log of a server that was asked for one call."""
    (folder / "leaky.py").write_text(TOOLS)
    (folder / "holdfast.yaml").write_text(
        f"upstreams: {{leaky: {{functions: 'leaky:leak'}}}}\ntelemetry: {telemetry}\n"
    )
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        url = next(word for word in first.split() if word.startswith("http://"))
        call = {"tool": "leaky.leak", "arguments": {"password": "hunter2-hunter2"}}
        asking = f"import urllib.request as u; u.urlopen('{url}/v1/calls', {json.dumps(call).encode()!r})"
        subprocess.run([sys.executable, "-c", asking], capture_output=True, check=False)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    return errors.splitlines()


@requirement("TEL-6", "CON-6")
@pytest.mark.parametrize("telemetry", ["{}", "{logs: json, traces: off, metrics: on}"])
def test_where_no_person_reads_along_every_line_is_json_and_says_no_secret(
    tmp_path: Path, telemetry: str
) -> None:
    lines = [json.loads(line) for line in served(tmp_path, telemetry)]
    (raised,) = (line for line in lines if "raised RuntimeError" in line["msg"])
    assert raised["call_id"] in raised["msg"]
    assert len(raised["trace_id"]) == 32
    assert "cannot log in with [secret]" in raised["msg"]
    assert "hunter2" not in json.dumps(lines)


@requirement("TEL-6", "CON-6")
def test_text_can_be_chosen_and_says_no_secret_either(tmp_path: Path) -> None:
    text = "\n".join(served(tmp_path, "{logs: text, level: info}"))
    assert " warning holdfast.execution.attempt: call " in text
    assert "cannot log in with [secret]" in text
    assert "hunter2" not in text
