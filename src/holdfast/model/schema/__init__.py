"""JSON Schema 2020-12, compiled once and used on every call."""

from holdfast.model.schema.closing import close
from holdfast.model.schema.defaults import Defaults, apply_defaults
from holdfast.model.schema.examination import DIALECT, examine
from holdfast.model.schema.sensitivity import LABELS, Sensitivity, redact, sensitive_paths
from holdfast.model.schema.tree import SchemaError
from holdfast.model.schema.validation import Validator, compile_schema

__all__ = [
    "DIALECT",
    "LABELS",
    "Defaults",
    "SchemaError",
    "Sensitivity",
    "Validator",
    "apply_defaults",
    "close",
    "compile_schema",
    "examine",
    "redact",
    "sensitive_paths",
]
