"""Is a written contract read the same from YAML, JSON and Python, and are its faults named?"""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from holdfast.catalog.document import (
    SCHEMA_ID,
    contract_schema,
    from_json,
    from_mapping,
    from_yaml,
    published_schema,
    read,
)
from holdfast.model.contract import SCHEMA_VERSION, Contract
from holdfast.model.errors import AdmissionError
from holdfast.model.schema import examine
from tests.catalog.contracts import critical, document, get_order, high, low, medium
from tests.requirements import requirement

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "contract.schema.json"

YAML = """
schema_version: "1"
identity: {namespace: shop, name: get_order, version: 1.0.0, sunset_on: 2030-12-31}
affordance:
  description: Look one order up by its number
  input_schema: {type: object, properties: {order_id: {type: string}}, required: [order_id]}
transactional: {effect: READ_ONLY}
"""


def reasons(document: Any) -> tuple[str, ...]:
    with pytest.raises(AdmissionError) as caught:
        from_mapping(document)
    return caught.value.reasons


@requirement("CON-1")
@pytest.mark.parametrize("contract", [get_order(), low(), medium(), high(), critical()], ids=lambda c: c.tool)
def test_yaml_json_and_python_give_the_same_contract(contract: Contract) -> None:
    written = contract.model_dump(mode="json")
    forms = [from_yaml(yaml.safe_dump(written)), from_json(json.dumps(written)), from_mapping(written)]
    assert all(form == contract and form.digest == contract.digest for form in forms)


@requirement("CON-1")
def test_a_file_is_read_by_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(YAML)
    (tmp_path / "a.json").write_text(json.dumps(document("get_order", "READ_ONLY")))
    assert read(tmp_path / "a.yaml").tool == read(tmp_path / "a.json").tool == "shop.get_order"


def test_a_date_in_yaml_stays_the_text_it_is() -> None:
    assert from_yaml(YAML).identity.sunset_on == "2030-12-31"


@requirement("CON-1")
def test_every_fault_is_named_with_its_path_and_the_nearest_key() -> None:
    told = reasons(
        {
            "identity": {"namespace": "Shop!", "name": "x", "version": "1.0.0", "ownr": "me"},
            "affordance": {"description": "d"},
            "transactional": {"efect": "READ_ONLY", "probe": {"read": {"tol": "shop.x"}, "commited": "true"}},
            "observabilty": {},
        }
    )
    assert [reason.split(";")[0].split(":")[0] for reason in told] == [
        "'identity.namespace'",
        "'identity.ownr' is not known here",
        "'affordance.input_schema' is missing",
        "'transactional.effect' is missing",
        "'transactional.probe.read.tool' is missing",
        "'transactional.probe.read.tol' is not known here",
        "'transactional.probe.committed' is missing",
        "'transactional.probe.commited' is not known here",
        "'transactional.efect' is not known here",
        "'observabilty' is not known here",
    ]
    hints = [reason.split("did you mean ")[1] for reason in told if "did you mean" in reason]
    assert hints == ["'owner'?", "'tool'?", "'committed'?", "'effect'?", "'observability'?"]


def test_a_key_like_no_other_gets_the_list() -> None:
    assert (
        "known are name, upstream, window_s"
        in reasons({**document("x", "READ_ONLY"), "idempotency": {"zzz": 1}})[0]
    )


def test_a_fault_does_not_show_what_was_written() -> None:
    spoiled = document("x", "READ_ONLY", runtime={"timeout_ms": "hunter2"})
    assert not any("hunter2" in reason for reason in reasons(spoiled))


@requirement("CON-1")
@pytest.mark.parametrize(
    "runtime", [{"timeout_ms": "500"}, {"max_retries": 1.5}, {"max_retries": True}, {"reach": "far"}]
)
def test_nothing_in_a_document_is_coerced(runtime: dict[str, Any]) -> None:
    [reason] = reasons(document("x", "READ_ONLY", runtime=runtime))
    assert f"'runtime.{next(iter(runtime))}'" in reason


@requirement("CON-1")
def test_a_form_of_another_version_is_refused() -> None:
    assert reasons({**document("x", "READ_ONLY"), "schema_version": "9"}) == (
        f"'schema_version' is '9'; this gateway reads '{SCHEMA_VERSION}'",
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: 1\na: 2", "key 'a' appears twice"),
        ("a: [", "not valid YAML at line 1"),
        ("- a", "it holds a list"),
        ("", "it holds a NoneType"),
        ("!!python/object/apply:os.getcwd []", "not valid YAML"),
    ],
)
def test_yaml_that_is_no_contract_is_refused(text: str, word: str) -> None:
    with pytest.raises(AdmissionError, match=word):
        from_yaml(text, "orders.yaml")


@pytest.mark.parametrize(
    ("text", "word"), [('{"a": 1, "a": 2}', "twice"), ("{", "not valid JSON"), ("[]", "a list")]
)
def test_json_that_is_no_contract_is_refused(text: str, word: str) -> None:
    with pytest.raises(AdmissionError, match=word):
        from_json(text, "orders.json")


@requirement("CON-1")
def test_the_published_schema_is_the_one_in_use() -> None:
    assert PUBLISHED.read_text() == published_schema(), (
        "write holdfast.catalog.document.published_schema() to docs/reference/contract.schema.json"
    )


@requirement("CON-1")
def test_the_schema_is_versioned_and_safe() -> None:
    schema = contract_schema()
    assert schema["$id"] == SCHEMA_ID
    assert SCHEMA_ID.endswith(f":{SCHEMA_VERSION}")
    assert examine(schema) == []


@requirement("CON-1")
@pytest.mark.parametrize("contract", [get_order(), low(), medium(), high(), critical()], ids=lambda c: c.tool)
def test_what_is_read_is_what_the_schema_allows(contract: Contract) -> None:
    validator = jsonschema_rs.Draft202012Validator(contract_schema(), offline=True)
    written = contract.model_dump(mode="json", exclude_none=True)
    assert list(validator.iter_errors({"schema_version": "1", **written})) == []
    assert not validator.is_valid({**written, "extra": 1})


@requirement("CON-1")
def test_the_document_has_every_part_of_the_specification() -> None:
    parts = set(contract_schema()["properties"])
    assert parts >= {
        "identity",
        "affordance",
        "runtime",
        "security",
        "transactional",
        "idempotency",
        "observability",
        "error_contract",
        "sanity",
    }
    defined = contract_schema()["$defs"]
    assert {"timeout_class", "timeout_ms", "reach", "cache_ttl_s", "sla", "cost"} <= set(
        defined["Runtime"]["properties"]
    )
    assert {"manifest", "undo", "preview", "probe", "postconditions"} <= set(
        defined["Transactional"]["properties"]
    )
    assert {"resource", "operation", "scope"} == set(defined["EffectEntry"]["properties"])
    assert "categories" in defined["Cost"]["properties"]
    assert "tags" in defined["Identity"]["properties"]
    assert "error_schema" in defined["ErrorContract"]["properties"]
