"""Is a secret ever copied?"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cli.wrap import files
from holdfast.cli.wrap.clients import setups
from holdfast.cli.wrap.jsonc import parse
from holdfast.cli.wrap.paste import entry, shown
from holdfast.cli.wrap.suspects import in_argument, in_url, in_value, looks_secret, named_secret
from holdfast.cli.wrap.upstreams import Plan, plan
from holdfast.config import parse as configured
from tests.requirements import requirement


def planned(servers: dict[str, Any], name: str = ".mcp.json", environ: dict[str, str] | None = None) -> Plan:
    file = Path("/srv") / name
    [setup] = setups(file, parse(json.dumps({"mcpServers": servers})))
    return plan(setup, Path("/srv"), environ or {})


@pytest.mark.parametrize(
    "name",
    "API_KEY GITHUB_TOKEN githubToken DB_PASSWORD PGPASSWORD CLIENT_SECRET AWS_ACCESS_KEY_ID X-Api-Key "
    "Authorization Cookie SENTRY_DSN OPENAI_APIKEY SSH_PRIVATE_KEY exaApiKey BASIC_AUTH".split(),
)
def test_what_is_named_like_a_secret_is_one(name: str) -> None:
    assert named_secret(name)
    assert in_value(name, "x") == [(0, 1, name)]


@pytest.mark.parametrize(
    "name", "LOG_LEVEL PATH HOME TOKENIZERS_PARALLELISM SSH_KEY_PATH AUTH_URL KEYBOARD Accept REGION".split()
)
def test_what_says_where_or_how_is_not(name: str) -> None:
    assert not named_secret(name)


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghij",
        "ghp_abcdefghijklmnop",
        "xoxb-123456-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
        "Bearer abcd1234",
        "postgres://app:hunter2@db/app",
        "Server=db;User=app;Password=hunter2;",
        "-----BEGIN RSA PRIVATE KEY-----\nMII",
        "3f2a9c0b1d4e5f60718293a4b5c6d7e8",
        "123e4567-e89b-12d3-a456-426614174000",
        "wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY",
    ],
)
def test_what_looks_like_a_secret_is_one(text: str) -> None:
    assert looks_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "@modelcontextprotocol/server-sequential-thinking",
        "server-filesystem-2026.8.31",
        "https://api.example.com/v1/projects/my-first-project/mcp",
        "/var/lib/some-application/data-directory-number-12",
        "C:\\Program Files\\nodejs\\node_modules\\something",
        "ghcr.io/github/github-mcp-server@sha256:" + "0a1b2c3d" * 8,
        "git+ssh://git@github.com/owner/repository.git@" + "0a1b2c3d" * 5,
        "--allow-write",
        "",
    ],
)
def test_what_is_only_long_is_not(text: str) -> None:
    assert not looks_secret(text)


@pytest.mark.parametrize(
    ("text", "before", "secret"),
    [
        ("--api-key=hunter2", "", "hunter2"),
        ("hunter2", "--token", "hunter2"),
        ("TOKEN=hunter2", "-e", "hunter2"),
        ("Authorization: Bearer hunter2", "--header", "Bearer hunter2"),
        ("redis://:hunter2@cache:6379", "--url", "redis://:hunter2@cache:6379"),
        ("--verbose", "--token", None),
        ("--port=8080", "", None),
        ("https://example.com/mcp", "mcp-remote", None),
    ],
)
def test_an_argument_is_looked_at_with_what_comes_before_it(
    text: str, before: str, secret: str | None
) -> None:
    found = [text[start:end] for start, end, _ in in_argument(text, before)]
    assert found == ([] if secret is None else [secret])


def test_an_address_is_cut_where_it_is_secret() -> None:
    url = "https://host.example/s/a1B2c3D4e5F6g7H8i9J0k1/mcp?api_key=x&page=2&sig=y#top"
    assert [url[start:end] for start, end, _ in in_url(url)] == ["a1B2c3D4e5F6g7H8i9J0k1", "x", "y"]


VALUE = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@requirement("PRO-4")
@settings(max_examples=150, deadline=None)
@given(
    secret=VALUE.map(lambda text: f"«{text}»"),
    name=st.sampled_from(["API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "PATH_SECRET", "HOLDFAST_API_KEY"]),
    client=st.sampled_from([".mcp.json", "claude_desktop_config.json", "mcp_config.json", "x.json"]),
)
def test_no_secret_is_written_or_shown_and_each_reaches_its_server(
    secret: str, name: str, client: str
) -> None:
    servers = {
        "one": {"command": "a", "args": [f"--{name}={secret}", "--password", secret], "env": {name: secret}},
        "two": {
            "url": "https://h.example/mcp",
            "headers": {"X-Api-Key": secret, "Authorization": f"Bearer {secret}"},
        },
        "three": {"command": "a", "env": {name: f"another {secret}"}},
    }
    made = planned(servers, client)
    body = files.config(made, client, {})
    own = entry(made, Path("/srv/holdfast.yaml"), "stdio")
    said = json.dumps(shown(made, own), ensure_ascii=False)
    assert secret not in body
    assert secret not in str(yaml.safe_load(body))
    assert secret not in said
    if made.setup.client.variables is not None and "${" in secret:
        return  # the client itself makes something else of it
    config = configured(yaml.safe_load(body), environ=own["env"])
    one, two, three = (config.upstreams[name].mcp for name in ("one", "two", "three"))
    assert one is not None
    assert two is not None
    assert three is not None
    assert one.args == tuple(servers["one"]["args"])
    assert one.env == servers["one"]["env"]
    assert two.headers == servers["two"]["headers"]
    assert three.env == servers["three"]["env"]


@given(text=st.text(alphabet="${}ABC:-x", max_size=20))
def test_text_that_looks_like_a_reference_means_itself(text: str) -> None:
    made = planned({"a": {"command": "a", "args": [text]}}, "claude_desktop_config.json")
    config = configured(yaml.safe_load(files.config(made, "x", {})), environ={})
    server = config.upstreams["a"].mcp
    assert server is not None
    assert server.args == (text,)


def test_one_name_for_two_values_is_two_variables() -> None:
    servers = {n: {"command": "a", "env": {"API_KEY": v}} for n, v in (("a", "1"), ("b", "2"), ("c", "1"))}
    made = planned(servers)
    assert [one.settings["env"]["API_KEY"] for one in made.wrapped] == [
        "${API_KEY}",
        "${B_API_KEY}",
        "${API_KEY}",
    ]


def test_a_variable_the_gateway_lives_by_is_passed_under_another_name() -> None:
    made = planned({"a": {"command": "a", "env": {"HOLDFAST_API_KEY": "1", "PATH": "/opt/bin"}}})
    assert made.wrapped[0].settings["env"] == {
        "HOLDFAST_API_KEY": "${A_HOLDFAST_API_KEY}",
        "PATH": "/opt/bin",
    }


def test_a_secret_default_stays_with_what_the_client_fills_in() -> None:
    made = planned({"a": {"command": "a", "env": {"PASSWORD": "${PW:-hunter2}", "DIR": "${DIR:-/data}"}}})
    assert made.wrapped[0].settings["env"] == {"PASSWORD": "${PASSWORD}", "DIR": "${DIR}"}
    own = entry(made, Path("holdfast.yaml"), "stdio")
    assert own["env"] == {"PASSWORD": "${PW:-hunter2}", "DIR": "${DIR:-/data}"}
    assert "hunter2" not in json.dumps(shown(made, own))


def test_values_are_kept_out_of_what_python_shows() -> None:
    made = planned({"a": {"command": "a", "env": {"API_KEY": "hunter2"}}})
    assert "hunter2" not in repr(made.references.given)
    assert "hunter2" not in repr(made.wrapped)
