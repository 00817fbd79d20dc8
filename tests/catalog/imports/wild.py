"""Schemas as wild as servers could write them, and values to try on them; from a seed, and fast."""

import random
from collections.abc import Callable
from typing import Any

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_TYPES = ["string", "integer", "number", "object", "array", "boolean", "null"]
_TEXTS = ["", "a", "ann@example.test", "abc", "1.2.3.4"]


class Wild:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def document(self) -> dict[str, Any]:
        """A schema of arguments, of draft 7 or of 2020-12."""
        made = self._object(0)
        made |= {"type": "object", "definitions": {"x": self._plain(), "y": self._plain()}}
        return {**made, "$schema": DRAFT_7} if self._chance(0.5) else made

    def value(self, depth: int = 0) -> Any:
        match self._random.randrange(8 if depth < 2 else 5):
            case 0:
                return None
            case 1:
                return self._chance(0.5)
            case 2:
                return self._random.randint(-3, 9)
            case 3 | 4:
                return self._random.choice(_TEXTS)
            case 5:
                return [self.value(depth + 1) for _ in range(self._random.randrange(3))]
        return self.arguments(depth + 1)

    def arguments(self, depth: int = 0) -> dict[str, Any]:
        return {name: self.value(depth) for name in "abc" if self._chance(0.6)}

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _schema(self, depth: int) -> Any:
        if self._chance(0.07):
            return self._chance(0.5)
        if self._chance(0.12):
            return {"$ref": self._random.choice(["#/definitions/x", "#/definitions/y"])}
        return self._object(depth)

    def _object(self, depth: int) -> dict[str, Any]:
        made = self._plain()
        if depth > 2:
            return made
        for keyword in "additionalProperties items contains not if then else propertyNames".split():
            if self._chance(0.12):
                made[keyword] = self._schema(depth + 1)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if self._chance(0.12):
                made[keyword] = [self._schema(depth + 1) for _ in range(self._random.randint(1, 3))]
        if self._chance(0.5):
            made["properties"] = {name: self._schema(depth + 1) for name in "ab" if self._chance(0.7)}
        if self._chance(0.1):
            patterns = [pattern for pattern in ("^a", "^(?!a)") if self._chance(0.6)]
            made["patternProperties"] = {pattern: self._schema(depth + 1) for pattern in patterns}
        return made

    def _plain(self) -> dict[str, Any]:
        pick = self._random
        said: dict[str, Callable[[], Any]] = {
            "type": lambda: pick.choice(_TYPES),
            "format": lambda: pick.choice(["email", "ipv4", "strange"]),
            "pattern": lambda: pick.choice(["^a", "^(?!a)", "b$"]),
            "enum": lambda: [self.value() for _ in range(pick.randint(1, 3))],
            "const": self.value,
            "minimum": lambda: pick.randint(-2, 3),
            "maximum": lambda: 2**63,
            "maxLength": lambda: pick.randint(0, 3),
            "required": lambda: pick.sample(["a", "b"], pick.randint(0, 2)),
            "maxProperties": lambda: pick.randint(0, 2),
            "maxContains": lambda: pick.randint(0, 2),
            "default": self.value,
            "nullable": lambda: True,
            "dependencies": lambda: {"a": ["b"]},
            "unevaluatedProperties": lambda: False,
        }
        return {keyword: make() for keyword, make in said.items() if self._chance(0.13)}
