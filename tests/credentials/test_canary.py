"""Does a secret of the gateway's own come out anywhere?

It is given to a function and to an MCP server that repeat it in every way they can. It may be in its own file
and in their hands, and nowhere else: no observation, record, log, span, metric, file, backup, or output of a
command.
"""

import asyncio
import base64
import io
import json
import logging
import os
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from holdfast import Gateway, Principal
from holdfast.telemetry.logs import configure
from tests.requirements import requirement
from tests.telemetry.world import Seen, said
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit

CANARY = "kanarienvogel-7391-äöü"
SPELT = (CANARY, "kanarienvogel-7391", base64.b64encode(CANARY.encode()).decode().rstrip("="))
ANA = Principal(
    user="ana", agent="bot", scopes=frozenset({"**"}), roles=frozenset({"operator", "user"}), trust=60
)
HOW = ("well", "raise", "chain", "no_effect", "misfit")
OVERLAY = {
    "version": 1,
    "tools": {
        "find": {
            "effect": "READ_ONLY",
            "credentials": [
                {"secret": "crm", "as": "header", "name": "Authorization", "prefix": "Bearer "},
                {"secret": "crm", "as": "argument", "name": "api_key"},
            ],
        }
    },
}


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure(stream, "json", "debug")
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)
    logging.captureWarnings(False)


async def repeats(visit: Visit) -> None:
    """A server that says whatever it was told."""
    if visit.method == "tools/list":
        schema = {
            "type": "object",
            "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}},
            "required": ["q", "api_key"],
        }
        tool = {"name": "find", "description": "Find something.", "inputSchema": schema}
        return visit.answer(tools=[tool], resultType="complete", ttlMs=0, cacheScope="public")
    told = {**visit.headers, **visit.message["params"]["arguments"]}
    if told["q"] == "fail":
        return visit.error(-32603, message=f"bad {json.dumps(told)}")
    return visit.answer(content=[{"type": "text", "text": json.dumps(told)}], structuredContent=told)


@asynccontextmanager
async def crm(folder: Path) -> AsyncIterator[tuple[Path, RogueHttp]]:
    """A folder with a configuration, and the server it fronts."""
    rogue = RogueHttp(repeats)
    async with rogue.open() as target:
        secret = folder / "private" / "crm.key"
        secret.parent.mkdir()
        secret.write_text(f"{CANARY}\n")
        (folder / "crm.yaml").write_text(yaml.safe_dump(OVERLAY))
        tree = {
            "store": "sqlite:///holdfast.db",
            "secrets": {"crm": {"file": "private/crm.key"}},
            "auth": {"people": {"ana": {"scopes": ["**"], "roles": ["operator"]}}},
            "upstreams": {
                "leaky": {"functions": "tests.credentials.leaky_tools:TOOLS"},
                "crm": {
                    "mcp": {"url": target.url, "headers": {"X-Standing": "${secret:crm}"}},
                    "contracts": "crm.yaml",
                },
            },
        }
        (folder / "holdfast.yaml").write_text(yaml.safe_dump(tree))
        yield folder / "holdfast.yaml", rogue


def clean(text: str | bytes) -> bool:
    raw = text if isinstance(text, bytes) else text.encode()
    return not any(spelt.encode() in raw or json.dumps(spelt)[1:-1].encode() in raw for spelt in SPELT)


@requirement("AUT-3", "CON-6")
async def test_a_secret_is_found_nowhere_but_where_it_is_kept(tmp_path: Path, logged: io.StringIO) -> None:
    seen, told = Seen(), []
    async with crm(tmp_path) as (file, rogue):
        async with Gateway.open(file, adapt=seen.adapt) as gateway:
            for name in ("send", "send_in_thread"):
                for how in HOW:
                    key = f"{name}-{how}"
                    answer = await gateway.call(f"leaky.{name}", {"how": how}, key=key, principal=ANA)
                    told += [answer.to_json(), repr(answer).encode()]
            for query in ("shoes", "fail"):
                answer = await gateway.call("crm.find", {"q": query}, principal=ANA)
                told += [answer.to_json(), repr(answer).encode(), repr(answer.native).encode()]
            told.append(await gateway.metrics(ANA))
            told += [repr(listing.native).encode() for listing in gateway.tools(ANA)]
            told += [repr(gateway._runtime).encode(), repr(gateway.config).encode()]
            wal = (tmp_path / "holdfast.db-wal").read_bytes()  # while it is there
        calls = [visit for visit in rogue.visits if visit.method == "tools/call"]
        words = (*COMMANDS, ("audit", "show", answer.call_id, "--json", "--as", "ana"))
        outputs = [await asyncio.to_thread(command, file, *one) for one in words]
    assert calls[0].headers["authorization"] == f"Bearer {CANARY}"
    assert calls[0].message["params"]["arguments"] == {"q": "shoes", "api_key": CANARY}
    spans = [(span.name, said(span), span.status.description, span.events) for span in seen.spans]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "private"]
    assert {"holdfast.db", "holdfast.lock", "copy.hfb"} <= {path.name for path in kept}
    with zipfile.ZipFile(tmp_path / "copy.hfb") as backup:
        assert all(clean(backup.read(name)) for name in backup.namelist())
    assert len(wal) > 1000
    assert "signing in with [credential]" in logged.getvalue()
    assert clean(logged.getvalue()), logged.getvalue()
    assert all(map(clean, told)), [one for one in told if not clean(one)]
    assert clean(repr(spans))
    assert all(map(clean, outputs)), [one for one in outputs if not clean(one)]
    assert clean(wal)
    assert [path.name for path in kept if not clean(path.read_bytes())] == []


COMMANDS = (
    ("tools", "--json"),
    ("doctor", "--json"),
    ("store", "backup", "copy.hfb", "--as", "ana"),
)


def command(file: Path, *words: str) -> bytes:
    argv = [sys.executable, "-m", "holdfast", *words, "--config", str(file)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    done = subprocess.run(argv, cwd=file.parent, capture_output=True, env=environ, check=False)
    return done.stdout + done.stderr


@requirement("AUT-3")
async def test_an_argument_the_gateway_fills_is_in_no_schema_and_taken_from_nobody(tmp_path: Path) -> None:
    async with crm(tmp_path) as (file, rogue), Gateway.open(file) as gateway:
        listing = next(one for one in gateway.tools(ANA) if one.upstream == "crm")
        assert listing.native is not None
        assert "api_key" not in json.dumps(listing.native)
        answer = await gateway.call("crm.find", {"q": "shoes", "api_key": "mine"}, principal=ANA)
        assert answer.status.value == "refused"
        assert [visit for visit in rogue.visits if visit.method == "tools/call"] == []
