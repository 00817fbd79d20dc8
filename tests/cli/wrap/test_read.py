"""Is every client's file understood?"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.config import load
from tests.cli.wrap.conftest import KINDS, Wrap
from tests.requirements import requirement


def written() -> dict[str, Any]:
    return {name: said["mcp"] for name, said in tree()["upstreams"].items()}


def tree() -> Any:
    return yaml.safe_load(Path("holdfast.yaml").read_text())


@requirement("PRO-4")
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_every_client_becomes_a_configuration_that_loads(here: Path, wrap: Wrap, kind: str) -> None:
    ended = wrap(here / KINDS[kind], "--no-connect", "--json")
    assert ended.code == 0
    said = ended.json
    assert said["client"] in kind or said["client"] == "MCP client"
    config = load("holdfast.yaml", environ={one["name"]: "x" for one in said["variables"]})
    assert {one["namespace"] for one in said["servers"].values()} == set(config.upstreams)
    for upstream in config.upstreams.values():
        assert upstream.contracts is not None
        assert yaml.safe_load(Path(upstream.contracts).read_text()) == {"version": 1, "tools": {}}


@requirement("PRO-4")
def test_local_servers_keep_command_arguments_and_plain_variables(here: Path, wrap: Wrap) -> None:
    wrap(here / KINDS["Claude Desktop"], "--no-connect")
    assert written() == {
        "github": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {
                "GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}",
                "LOG_LEVEL": "info",
                "LITERAL": "$${NOT_A_VARIABLE}",
            },
        },
        "my-files": {
            "command": "C:\\Program Files\\nodejs\\npx.cmd",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "C:\\Data\\Documents"],
        },
        "postgres": {"command": "uvx", "args": ["pg-mcp", "${POSTGRES_URL}"]},
        "docker": {
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "SLACK_BOT_TOKEN=${SLACK_BOT_TOKEN}", "mcp/slack"],
        },
    }


@requirement("PRO-4")
def test_remote_servers_keep_their_address_and_what_the_client_fills_in(here: Path, wrap: Wrap) -> None:
    said = wrap(here / KINDS["Claude Code, project"], "--no-connect", "--json").json
    assert written() == {
        "sentry": {
            "url": "https://mcp.sentry.dev/mcp",
            "headers": {"Authorization": "Bearer ${SENTRY_TOKEN}", "X-Api-Key": "${SENTRY_X_API_KEY}"},
        },
        "local": {
            "command": "python",
            "args": ["server.py", "--dir", "${DATA_DIR}", "--password=${LOCAL_PASSWORD}"],
            "env": {"TOKEN": "${TOKEN}"},
            "cwd": str(here / "code-project"),
        },
    }
    passed = said["paste"]["mcpServers"]["holdfast"]["env"]
    assert passed["SENTRY_TOKEN"] == "${SENTRY_TOKEN}"
    assert passed["DATA_DIR"] == "${DATA_DIR:-data}"
    assert passed["TOKEN"] == "<the value of mcpServers.local.env.TOKEN>"


def test_an_address_with_a_password_becomes_a_header(here: Path, wrap: Wrap) -> None:
    wrap(here / KINDS["Cursor"], "--no-connect")
    assert written()["search"] == {
        "url": "https://search.example/mcp",
        "headers": {"X-Team": "blue", "Authorization": "${SEARCH_AUTHORIZATION}"},
    }
    assert written()["files"]["command"] == "${WORKSPACE_FOLDER}/bin/files"
    assert written()["files"]["args"] == ["${USER_HOME}/notes", "${EDITOR_NAME}"]


def test_a_secret_in_an_address_leaves_the_rest_of_it_readable(here: Path, wrap: Wrap) -> None:
    wrap(here / KINDS["Claude Code, user"], "--project", "/srv/shop", "--no-connect")
    assert written()["exa"]["url"] == "https://mcp.exa.ai/mcp?exaApiKey=${EXA_EXA_API_KEY}&tools=web"
    assert written()["zapier"]["url"] == "https://mcp.zapier.com/api/mcp/s/${ZAPIER_PATH}/mcp"


def test_comments_and_commas_too_many_are_no_fault(here: Path, wrap: Wrap) -> None:
    said = wrap(here / KINDS["VS Code"], "--no-connect", "--json").json
    assert list(said["servers"]) == ["perplexity", "memory", "remote"]
    assert written()["perplexity"]["env"] == {"PERPLEXITY_API_KEY": "${PERPLEXITY_KEY}"}
    entry = said["paste"]["servers"]["holdfast"]
    assert entry["type"] == "stdio"
    assert entry["env"]["PERPLEXITY_KEY"] == "${input:perplexity-key}"
    assert any("'dev' is not carried over" in note for note in said["notes"])


def test_an_environment_file_is_referred_to_by_its_names(here: Path, wrap: Wrap) -> None:
    said = wrap(here / KINDS["VS Code"], "--no-connect", "--json").json
    assert written()["memory"]["env"] == {"MEMORY_KEY": "${MEMORY_KEY}", "PLAIN": "${PLAIN}"}
    assert said["paste"]["servers"]["holdfast"]["envFile"] == "${workspaceFolder}/.env"


def test_user_and_project_servers_are_wrapped_apart(here: Path, wrap: Wrap) -> None:
    wrap(here / KINDS["Claude Code, user"], "--no-connect")
    assert written() == {"linear": {"url": "https://mcp.linear.app/sse", "transport": "sse"}}
    said = wrap(here / KINDS["Claude Code, user"], "--no-connect").out
    assert "projects./srv/shop.mcpServers has servers too; to wrap those: --project /srv/shop" in said
    nowhere = wrap(here / KINDS["Claude Code, user"], "--project", "/srv/none", "--no-connect")
    assert (nowhere.code, "no servers for the project '/srv/none'" in nowhere.err) == (2, True)


def test_what_is_disabled_or_odd_is_left_as_it_is(here: Path, wrap: Wrap) -> None:
    assert wrap(here / KINDS["Claude Desktop"], "--no-connect", "--json").json["left"] == {"old": "disabled"}
    odd = wrap(here / KINDS["Windsurf"], "--no-connect", "--out", "w", "--json").json
    assert list(odd["left"]) == ["odd"]
    assert "'websocket' is not one of 'stdio', 'http', 'sse'" in odd["left"]["odd"]
    assert any("'autoApprove' is not carried over" in note for note in odd["notes"])


def test_both_forms_of_zed_are_read(here: Path, wrap: Wrap) -> None:
    wrap(here / KINDS["Zed"], "--no-connect")
    assert written() == {
        "notes": {"command": "notes-mcp"},
        "older": {"command": "older-mcp", "args": ["--token", "${OLDER_TOKEN}"]},
    }


def test_names_become_namespaces_without_collisions(here: Path, wrap: Wrap) -> None:
    said = wrap(here / KINDS["plain"], "--no-connect")
    long = "a-very-long-name-of-a-server-that"
    short = ["mitt-lage", "mitt-lage-2", "mitt-lage-3", "server", "all-2"]
    assert list(written()) == [*short, long[:32], f"{long[:30]}-2"]
    assert "Mitt Läge" in said.out
    assert "#   mitt-lage: Mitt Läge" in Path("holdfast.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"servers": []}', "'servers' must be an object"),
        ('{"name": "x", "version": 1}', "looked for\n  'mcpServers': Claude Desktop"),
        ("[]", "it must hold one object"),
        ("", "line 1, column 1: it ends too early"),
        ('{"mcpServers": {"a": {"command": "C:\\x"}}}', "line 1, column 37: '\\x' is no escape"),
        ('{\n "mcpServers": {"a" {}}}', "line 2, column 21: ':' is missing"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {}}}', "'a' is given twice"),
        ('{"mcpServers": {}, "mcpServers": {}}', "'mcpServers' is given twice"),
        ('{"mcpServers": {"a": {"comand": "x"}}}', "a: it has neither 'command' nor 'url'"),
        ("[" * 5000, "nested too deep"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_as_such(wrap: Wrap, tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "some.json"
    file.write_text(text)
    ended = wrap(file, "--no-connect")
    assert ended.code == 2
    assert told in ended.err
    assert list(Path.cwd().iterdir()) == []


def test_a_file_that_is_not_there_or_not_text_is_told_as_such(wrap: Wrap, tmp_path: Path) -> None:
    assert "there is no" in wrap(tmp_path / "nothing.json").err
    (tmp_path / "wide.json").write_text('{"mcpServers": {}}', encoding="utf-16")
    assert "is not UTF-8 text" in wrap(tmp_path / "wide.json").err
