"""What is the same in two answers that two gateways gave to the same request?"""

import re
from typing import Any

import orjson

_ALIKE = (
    (re.compile(r"call_[0-9a-f]{28}"), "<call>"),
    (re.compile(r"\b(dec|apr|pd|approval)_[0-9a-zA-Z]+"), "<id>"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "<hex>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"wait \d+ ms"), "<wait>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<here>"),
)
_OTHER = {"latency_ms", "requestState", "retry_after_ms", "policy_decision_id", "plan_token"}
"""Members that differ from call to call."""


def alike(said: Any) -> Any:
    """The same for two answers that differ in ids, times and secrets alone."""
    if isinstance(said, dict):
        return {name: name if name in _OTHER else alike(value) for name, value in said.items()}
    if isinstance(said, list):
        return [alike(item) for item in said]
    if not isinstance(said, str):
        return said
    if said.startswith(("{", "[")):
        try:
            return alike(orjson.loads(said))
        except orjson.JSONDecodeError:
            pass
    for pattern, name in _ALIKE:
        said = pattern.sub(name, said)
    return said
