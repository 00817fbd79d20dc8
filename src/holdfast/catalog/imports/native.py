"""Which contracts carry what a server offers beside tools?

Resources, prompts and completion pass every gate too, as read-only tools of our own that no list shows.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.catalog.admission import Offer
from holdfast.catalog.document import from_mapping
from holdfast.model.mcp import COMPLETE, GET, READ
from holdfast.model.vocabulary import Egress

_TEXT = {"type": "string"}
_OPEN = {"type": "object", "additionalProperties": True}
_COMPANIONS: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
    "resources": (
        READ,
        "Read one resource of the upstream by its URI",
        {"uri": {**_TEXT, "description": "URI of the resource, as the upstream lists it"}},
        ["uri"],
    ),
    "prompts": (
        GET,
        "Get one prompt of the upstream, filled in with arguments",
        {
            "name": {**_TEXT, "description": "Name of the prompt, as the upstream lists it"},
            "arguments": {**_OPEN, "description": "Values of the prompt's arguments, by name"},
        },
        ["name"],
    ),
    "completions": (
        COMPLETE,
        "Complete an argument of a prompt or of a resource template of the upstream",
        {
            "ref": {**_OPEN, "description": "Which prompt or resource template is meant"},
            "argument": {**_OPEN, "description": "Name and value so far of the argument"},
            "context": {**_OPEN, "description": "Arguments that are known already"},
        },
        ["ref", "argument"],
    ),
}


def companions(namespace: str, capabilities: Mapping[str, Any], egress: Egress = Egress.NONE) -> list[Offer]:
    """One offer for each thing the upstream says it has."""
    return [
        _offer(namespace, egress, *parts)
        for capability, parts in _COMPANIONS.items()
        if capabilities.get(capability) is not None
    ]


def _offer(
    namespace: str, egress: Egress, name: str, text: str, properties: dict[str, Any], required: list[str]
) -> Offer:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    document = {
        "identity": {"namespace": namespace, "name": name, "version": "1.0.0"},
        "affordance": {"description": text, "input_schema": schema},
        "runtime": {"timeout_class": "long_running", "reach": "network"},
        "security": {"required_scopes": [f"{namespace}:read"], "egress": egress.value},
        "transactional": {"effect": "READ_ONLY"},
    }
    return Offer(contract=from_mapping(document), upstream=namespace)
