"""Which contract does an imported tool get: before anybody has said what it does, and after?"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from holdfast.catalog.document import from_mapping
from holdfast.catalog.imports.infer import read_only
from holdfast.catalog.imports.names import local_name
from holdfast.catalog.imports.schemas import enforceable, enforceable_output
from holdfast.catalog.imports.secret_arguments import secret_arguments, without_arguments
from holdfast.model.contract import Contract
from holdfast.model.declaration import blank, fill
from holdfast.model.schema import close
from holdfast.model.vocabulary import Effect, Floor, Operation, Reach, TimeoutClass, ToolStatus, Undo

MAX_DESCRIPTION = 4096
"""Characters of a contract's description; the native one is shown whole."""
UNSEEN = "0.0.0"
"""Version of a tool nobody has accepted yet: it stands for the name and can do nothing."""
_REMEMBERED_LENGTH = 65_536
EXTRA = frozenset({"hidden", "pinned"})
"""Overlay keywords about listing, not about the contract."""


def provisional(
    namespace: str, descriptor: Mapping[str, Any], version: str, *, trust_annotations: bool
) -> Contract:
    """The conservative contract of a tool nobody classified; raises SchemaError. CON-8."""
    return from_mapping(_document(namespace, descriptor, version, trust_annotations=trust_annotations))


def build(
    namespace: str,
    descriptor: Mapping[str, Any],
    version: str,
    stated: Mapping[str, Any],
    *,
    trust_annotations: bool,
) -> Contract:
    """The contract with what the overlay states; raises SchemaError or AdmissionError.

    A tool whose effect is stated is active: its conservative parts are dropped, and the class table holds for
    what the overlay says. Made once for the same words: a list that did not change costs little.
    """
    text = json.dumps([namespace, descriptor, version, stated, trust_annotations])
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH else _built(text)


def _built(text: str) -> Contract:
    namespace, descriptor, version, stated, trust_annotations = json.loads(text)
    document = _document(namespace, descriptor, version, trust_annotations=trust_annotations)
    said = {word: value for word, value in stated.items() if word not in EXTRA}
    if "effect" in said:
        document["identity"]["status"] = ToolStatus.ACTIVE.value
        document["transactional"] = {}
        document["security"].pop("approval_floor")
        document.pop("idempotency", None)
    if isinstance(said.get("input_schema"), dict):
        said["input_schema"] = close(said["input_schema"])  # written here, so it is closed; CON-8
    if secret := secret_arguments(said):
        face = document["affordance"]
        face["input_schema"] = without_arguments(face["input_schema"], secret, refused=True)
    if "job" in said:  # what it submits is not what it answers
        said.setdefault("output_schema", {})
    said.setdefault("version", version)
    fill(document, said, namespace)
    return from_mapping(document, f"{namespace}.{document['identity']['name']}")


_remembered = lru_cache(maxsize=2048)(_built)


def placeholder(namespace: str, native: str) -> Contract:
    """A contract that holds a name for a tool in quarantine, with none of the upstream's own words."""
    stand_in = {"name": native, "inputSchema": {"type": "object"}}
    described = {**stand_in, "description": "This tool waits for an operator to accept it"}
    return provisional(namespace, described, UNSEEN, trust_annotations=False)


def shown(descriptor: Mapping[str, Any], contract: Contract, stated: Mapping[str, Any]) -> dict[str, Any]:
    """The descriptor as clients see it: the upstream's own, with what the overlay rewrites."""
    face = contract.affordance
    changed: dict[str, Any] = {}
    if "description" in stated:
        changed["description"] = face.description
    if "input_schema" in stated:
        changed["inputSchema"] = face.input_schema
    elif secret := secret_arguments(stated):
        changed["inputSchema"] = without_arguments(descriptor["inputSchema"], secret)
    if "output_schema" in stated:
        changed["outputSchema"] = face.output_schema
    said = {**descriptor, **changed}
    if "job" in stated and "output_schema" not in stated:
        said.pop("outputSchema", None)  # that of what it submits
    return said


def _document(
    namespace: str, descriptor: Mapping[str, Any], version: str, *, trust_annotations: bool
) -> dict[str, Any]:
    native = descriptor["name"]
    name = local_name(native)
    output = descriptor.get("outputSchema")
    document = blank()
    document["identity"] = {"namespace": namespace, "name": name, "version": version}
    document["identity"]["status"] = ToolStatus.PROVISIONAL.value
    if native != name:
        document["identity"]["upstream_name"] = native
    document["affordance"] = {
        "description": _description(descriptor),
        "input_schema": enforceable(descriptor["inputSchema"]),
        "output_schema": enforceable_output(output) if isinstance(output, dict) else {},
    }
    document["runtime"] = {"reach": Reach.NETWORK.value, "timeout_class": TimeoutClass.LONG_RUNNING.value}
    document["security"] = {"required_scopes": [f"{namespace}:{name}"]}
    reads = trust_annotations and read_only(descriptor)
    document["security"]["approval_floor"] = (Floor.NONE if reads else Floor.OPERATOR).value
    if reads:
        document["transactional"] = {"effect": Effect.READ_ONLY.value}
        return document
    document["transactional"] = {
        "effect": Effect.HIGH_RISK_EXTERNAL.value,
        "undo": Undo.NONE.value,
        "manifest": [{"resource": namespace, "operation": Operation.UPDATE.value, "scope": "unknown"}],
        "preview": {},
    }
    document["idempotency"] = {"upstream": "none"}
    return document


def _description(descriptor: Mapping[str, Any]) -> str:
    text = str(descriptor.get("description") or descriptor.get("title") or "")
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 4].rstrip() + " ..."
