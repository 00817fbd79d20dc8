"""Does the configuration say what was written, and what is wrong with it?"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import Config, load, parse
from holdfast.config.explain import keys
from holdfast.config.section import Section
from holdfast.config.unbuilt import NOT_BUILT
from holdfast.model import defaults
from holdfast.model.errors import ConfigError
from tests.requirements import requirement

REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "config.md"
HASH = "sha256:" + "0" * 64
ALICE = {"alice": {"scopes": ["orders:*"]}}


def faults(tree: dict[str, Any], environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(tree, environ=environ or {})
    first, *rest = str(caught.value).split("\n  ")
    assert first == "config cannot be used"
    return rest


@requirement("NAM-2")
def test_yaml_and_toml_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("environment: prod\nupstreams:\n  shop: {functions: 'shop:tools'}\n")
    (tmp_path / "a.toml").write_text('environment = "prod"\n[upstreams.shop]\nfunctions = "shop:tools"\n')
    assert load(tmp_path / "a.yaml").model_dump() == load(tmp_path / "a.toml").model_dump()
    assert load(tmp_path / "a.yaml").upstreams["shop"].functions == "shop:tools"


@requirement("FIG-1")
def test_what_is_left_out_has_the_figures_of_the_one_table() -> None:
    config = parse({})
    assert (config.store, config.environment, config.auth.mode) == ("sqlite:///holdfast.db", "dev", "local")
    assert config.limits.body_bytes == defaults.BODY_BYTES
    assert config.limits.depth == defaults.BODY_DEPTH
    assert config.limits.string == defaults.BODY_STRING
    assert config.limits.keys == defaults.BODY_KEYS
    assert config.limits.ingress.rate == defaults.INGRESS_RATE
    assert config.limits.ingress.burst == defaults.INGRESS_BURST
    assert config.approvals.expire_s == defaults.APPROVAL_S
    assert config.trust_threshold == defaults.TRUST_THRESHOLD


@requirement("NAM-2")
@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        ({"upstreams": {"shop": {"mpc": {}}}}, "upstreams.shop.mpc: unknown key 'mpc'; did you mean 'mcp'?"),
        ({"upstream": {}}, "upstream: unknown key 'upstream'; did you mean 'upstreams'?"),
        ({"polices": "x"}, "polices: unknown key 'polices'; did you mean 'policies'?"),
        ({"limits": {"ingress": {"rat": 1}}}, "limits.ingress.rat: unknown key 'rat'; did you mean 'rate'?"),
        (
            {"auth": {"people": {"alice": {"role": []}}}},
            "auth.people.alice.role: unknown key 'role'; did you mean 'roles'?",
        ),
        (
            {"auth": {"people": {"alice": {"scopes": [{"scope": "a", "expire": 1}]}}}},
            "auth.people.alice.scopes.0.expire: unknown key 'expire'; did you mean 'expires'?",
        ),
        (
            {"approvals": {"zzz": 1}},
            "approvals.zzz: unknown key 'zzz'; known are 'chain', 'cost_per_decision', 'expire_s', "
            "'release', 'trusted_clients'",
        ),
    ],
)
def test_an_unknown_key_is_refused_with_its_path_and_the_nearest_known_one(
    tree: dict[str, Any], fault: str
) -> None:
    assert faults(tree) == [fault]


@requirement("POL-2")
@pytest.mark.parametrize("path", NOT_BUILT)
def test_what_is_not_built_yet_is_refused_and_not_ignored(path: str) -> None:
    value, instead = NOT_BUILT[path]
    *parents, key = path.replace("*", "shop").split(".")
    tree: Any = {key: {"some": "thing"} if value is None else f"{value}"}
    for parent in reversed(parents):
        tree = {parent: tree}
    place = path.replace("*", "shop")
    assert faults(tree) == [f"{place}: {value or key!r} is not built yet; {instead}"]


@requirement("NAM-2")
def test_all_faults_are_told_at_once() -> None:
    told = faults(
        {
            "environment": "production",
            "store": "sqlite:///${NOWHERE}.db",
            "auth": {"issuer": "x"},
            "limits": {"depth": "deep", "keys": 0},
            "upstreams": {"Shop": {"functions": "a:b"}, "b": {"functions": "nocolon"}, "c": {}, "d": None},
            "trust_threshold": 101,
        }
    )
    assert sorted(told) == sorted(
        [
            "environment: must be 'dev', 'staging' or 'prod', not 'production'",
            "store: environment variable 'NOWHERE' is not set; set it",
            "auth.issuer: 'x' is not allowed here; write 'https://host/path'",
            "limits.depth: must be a valid integer, not 'deep'",
            "limits.keys: must be greater than or equal to 1, not 0",
            "upstreams.Shop: 'Shop' is not allowed here; use small letters, digits and '-', at most 32",
            "upstreams.b.functions: 'nocolon' is not allowed here; write 'module:object'",
            "upstreams.c: name either 'functions' or 'mcp'",
            "upstreams.d: must be a mapping of keys, not empty",
            "trust_threshold: must be less than or equal to 100, not 101",
        ]
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1\nb: 2", "holdfast.yaml is not valid YAML, line 2, column 2"),
        ("store: a\nstore: b", "line 2, column 1: key 'store' is given twice"),
        ("- 1", "holdfast.yaml must be a mapping of keys, not a list"),
        ("just words", "holdfast.yaml must be a mapping of keys, not text"),
        ("a: !!python/object:os.system x", "holdfast.yaml is not valid YAML, line 1"),
        ("a: \x00", "holdfast.yaml is not valid YAML"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "holdfast.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert told in str(caught.value)


def test_bad_toml_a_missing_file_and_bytes_that_are_no_text_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = ")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    for name, told in [
        ("a.toml", "a.toml is not valid TOML"),
        ("b.yaml", "b.yaml is not UTF-8 text"),
        ("c.yaml", "there is no 'c.yaml' in"),
        (".", "cannot read"),
    ]:
        with pytest.raises(ConfigError, match=told):
            load(tmp_path / name)


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    (tmp_path / "holdfast.yaml").write_text("# nothing\n")
    assert load(tmp_path / "holdfast.yaml").model_dump() == parse({}).model_dump()


def test_variables_are_expanded_and_can_be_escaped() -> None:
    config = parse(
        {"store": "sqlite:///${NAME}.db", "pins": {"shop.a": "$${NAME}"}, "limits": {"depth": "${DEPTH}"}},
        environ={"NAME": "orders", "DEPTH": "7"},
    )
    assert config.store == "sqlite:///orders.db"
    assert config.pins == {"shop.a": "${NAME}"}
    assert config.limits.depth == 7


def test_relative_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.yaml"
    file.write_text("store: sqlite:///data/h.db")
    config = load(file)
    assert config.folder == tmp_path
    assert config.store_path == tmp_path / "data" / "h.db"
    file.write_text("store: sqlite:////var/h.db")
    assert load(file).store_path == Path("/var/h.db")


def test_nothing_can_be_changed_later() -> None:
    config = parse({})
    with pytest.raises(ValueError, match="frozen"):
        config.store = "sqlite:///other.db"


@requirement("AUT-1")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "", "127.0.0.1.example.org"])
def test_local_mode_does_not_serve_other_machines(host: str) -> None:
    with pytest.raises(ConfigError, match="serves this machine only"):
        parse({}).check_host(host)
    keyed = {"mode": "api_key", "people": ALICE, "keys": [{"id": "abcd", "hash": HASH, "user": "alice"}]}
    parse({"auth": keyed}).check_host(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"])
def test_local_mode_serves_this_machine(host: str) -> None:
    parse({}).check_host(host)


@requirement("APR-2")
def test_agents_and_keys_belong_to_people_who_exist() -> None:
    auth = {
        "mode": "api_key",
        "people": {"alice": {}, "bob": {}},
        "agents": {"a1": {"user": "alic"}, "a2": {"user": "bob"}},
        "keys": [
            {"id": "abcd", "hash": HASH, "user": "carol"},
            {"id": "abcd", "hash": HASH, "user": "alice", "agent": "a2"},
            {"id": "efgh", "hash": HASH, "user": "alice", "agent": "zed"},
        ],
    }
    assert faults({"auth": auth}) == [
        "auth.agents.a1.user: there is no person 'alic'; did you mean 'alice'?",
        "auth.keys.0.user: there is no person 'carol'; add it under auth.people",
        "auth.keys.1.agent: 'a2' acts for 'bob', not for 'alice'",
        "auth.keys.2.agent: there is no agent 'zed'; add it under auth.agents",
        "auth.keys.1.id: 'abcd' is given twice; make another key",
    ]


def test_key_mode_needs_no_key_in_the_configuration() -> None:
    assert parse({"auth": {"mode": "api_key"}}).auth.keys == ()


@requirement("AUT-4")
@pytest.mark.parametrize("scope", ["a b", "", ":", "a::", "orders:re**", "**:a:**:b:**", "x" * 300, "ä"])
def test_what_is_no_scope_is_refused_where_it_stands(scope: str) -> None:
    trees: list[tuple[dict[str, Any], str]] = [
        ({"critical_scopes": [scope]}, "critical_scopes.0: "),
        ({"auth": {"people": {"alice": {"scopes": ["a", scope]}}}}, "auth.people.alice.scopes.1: "),
    ]
    for tree, place in trees:
        (told,) = faults(tree)
        assert told.startswith(place)


def test_times_need_a_time_zone() -> None:
    held = {"scope": "orders:read", "expires": "2030-01-01T00:00:00"}
    (told,) = faults({"auth": {"people": {"alice": {"scopes": [held]}}}})
    assert told.startswith("auth.people.alice.scopes.0.expires: must have timezone info")
    held["expires"] += "+01:00"
    person = parse({"auth": {"people": {"alice": {"scopes": [held]}}}}).auth.people["alice"]
    assert person.scopes[0].expires is not None


@requirement("APR-2")
@pytest.mark.parametrize("secret", ["hunter2", 12345, "$${NAME}", "a${NAME}", "sha256:" + "0" * 64])
def test_an_approver_secret_is_never_in_the_file_and_never_echoed(secret: object) -> None:
    (told,) = faults({"auth": {"people": {"alice": {"approver_secret": secret}}}}, {"NAME": "x"})
    assert told.startswith("auth.people.alice.approver_secret: ")
    assert str(secret) not in told


def test_an_unset_approver_secret_matches_nothing_and_stops_nobody() -> None:
    tree = {"auth": {"people": {"alice": {"approver_secret": "${ALICE_SECRET}"}}}}
    assert parse(tree, environ={}).auth.people["alice"].approver_secret == "plain:"
    config = parse(tree, environ={"ALICE_SECRET": "hunter2"})
    assert config.auth.people["alice"].approver_secret == "plain:hunter2"
    assert "hunter2" not in repr(config)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([key.rpartition(".")[2] for key, _, _ in keys()]) | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(Config.model_fields)) | st.text(max_size=4), JSON, max_size=6))
def test_whatever_is_written_is_either_used_or_refused_in_words(tree: dict[str, Any]) -> None:
    told = ""
    try:
        parse(tree, environ={})
    except ConfigError as error:
        told = str(error)
    assert not told or "\n  " in told
    assert "pydantic" not in told


@requirement("NAM-2")
def test_every_key_is_documented_with_its_default_and_no_other_is() -> None:
    rows = [line for line in REFERENCE.read_text().splitlines() if line.startswith("| `")]
    expected = [f"| `{path}` | {shown(default)} | {meaning} |" for path, meaning, default in keys()]
    unbuilt = [
        f"| `{path}` | {f'`{value}`' if value else 'the whole key'} |"
        for path, (value, _) in NOT_BUILT.items()
    ]
    assert rows == expected + unbuilt
    assert all(meaning for _, meaning, _ in keys())


def shown(default: Any) -> str:
    if default is ...:
        return "required"
    if default is None or default in ({}, ()) or isinstance(default, Section):
        return ""
    if isinstance(default, tuple):
        return ", ".join(f"`{one}`" for one in default)
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


@requirement("REG-1")
def test_no_upstream_takes_the_name_of_the_gateways_own_operations() -> None:
    [fault] = faults({"upstreams": {"holdfast": {"functions": "tools:TOOLS"}}})
    assert "names the gateway's own; choose another name" in fault
