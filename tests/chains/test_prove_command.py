"""`holdfast chain prove` and `accept` at the command line, and what a twin may be."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from holdfast.cli.app import run
from holdfast.config import parse
from holdfast.gateway.proving_chains import _twin_of
from holdfast.model.errors import ConfigError
from tests.chains.ledger import PEOPLE
from tests.requirements import requirement

CHAIN = """
chain: order
saga: true
input: {type: object, properties: {item: {type: string}}, required: [item]}
steps:
  - id: reserve
    tool: shop.reserve
    with: {item: =input.item}
    prove: {read: {tool: shop.look, with: {item: =input.item}}, value: stock}
  - id: charge
    tool: shop.charge
    with: {who: kim, cents: 500}
    prove: {read: {tool: shop.look, with: {item: =input.item}}, value: owed}
"""
TEA = ["--args", '{"item": "tea"}']


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    upstream = {"functions": "tests.chains.ledger:real", "twin": {"functions": "tests.chains.ledger:twin"}}
    config = {"upstreams": {"shop": upstream}, "auth": {"people": PEOPLE}, "environment": "staging"}
    (tmp_path / "holdfast.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "order.yaml").write_text(CHAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@requirement("SAG-4", "NAM-1")
def test_prove_tells_what_inverts_and_accept_takes_the_rest(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["chain", "run", "order.yaml", *TEA, "--as", "ada"]) == 1
    told = capsys.readouterr().err
    assert "is not started; try it with 'holdfast chain prove'" in told
    assert run(["chain", "prove", "order.yaml", *TEA, "--as", "ola", "--json"]) == 1
    found = orjson.loads(capsys.readouterr().out)
    assert {one["step"]: one["found"] for one in found["steps"]} == {"reserve": "shown", "charge": "refuted"}
    assert run(["chain", "accept", "order.yaml", "--note", "checked by hand", "--as", "ada"]) == 3
    capsys.readouterr()
    assert run(["chain", "accept", "order.yaml", "--note", "checked by hand", "--as", "ola"]) == 0
    assert "accepted  charge (shop.charge by shop.refund)" in capsys.readouterr().out
    assert run(["chain", "accept", "order.yaml", "--note", "again", "--as", "ola"]) == 0
    assert "nothing was left to accept" in capsys.readouterr().out


@requirement("SAG-4")
@pytest.mark.parametrize(
    ("upstream", "said"),
    [
        ({"functions": "shop:tools", "twin": {"env": {"A": "b"}}}, "name 'functions'"),
        ({"mcp": {"command": "shop"}, "twin": {"functions": "shop:tools"}}, "name 'mcp' or 'env'"),
        ({"mcp": {"url": "https://shop.example/mcp"}, "twin": {"env": {"A": "b"}}}, "name 'mcp'"),
        ({"functions": "shop:tools", "twin": {}}, "name one of 'functions', 'mcp' and 'env'"),
    ],
)
def test_a_twin_is_of_the_same_kind(upstream: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse({"upstreams": {"shop": upstream}})


@requirement("SAG-4")
def test_a_program_has_a_twin_in_another_environment() -> None:
    server = {"command": "shop", "args": ["--fast"], "env": {"DB": "real.db", "LOG": "quiet"}}
    config = parse({"upstreams": {"shop": {"mcp": server, "twin": {"env": {"DB": "scratch.db"}}}}})
    twin = _twin_of(config.upstreams["shop"])
    assert twin.mcp is not None
    assert (twin.mcp.command, twin.mcp.args) == ("shop", ("--fast",))
    assert twin.mcp.env == {"DB": "scratch.db", "LOG": "quiet"}
