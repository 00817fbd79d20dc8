"""Which of an upstream's arguments does the gateway fill, and how does nobody else?"""

from collections.abc import Mapping
from typing import Any


def secret_arguments(stated: Mapping[str, Any]) -> frozenset[str]:
    """The names an overlay gives to secrets, and to the address a job calls back.

    What it says wrongly is refused elsewhere.
    """
    credentials, job = stated.get("credentials"), stated.get("job")
    named = {
        one["name"]
        for one in (credentials if isinstance(credentials, list | tuple) else ())
        if isinstance(one, Mapping) and one.get("as") == "argument" and isinstance(one.get("name"), str)
    }
    if isinstance(job, Mapping) and isinstance(callback := job.get("callback"), str):
        named.add(callback)
    return frozenset(named)


def without_arguments(
    schema: dict[str, Any], names: frozenset[str], *, refused: bool = False
) -> dict[str, Any]:
    """The schema as if it never asked for them; where they are `refused`, nobody may give them either."""
    properties = schema.get("properties")
    left = {k: v for k, v in properties.items() if k not in names} if isinstance(properties, dict) else {}
    if refused:
        left |= dict.fromkeys(sorted(names), False)
    made = {**schema, "properties": left}
    if isinstance(required := schema.get("required"), list):
        made["required"] = [name for name in required if name not in names]
        if not made["required"]:
            del made["required"]
    return made
