"""Is JSON data already what a type hint asks for?"""

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

_SCALARS = (str, int, float, bool, NoneType, None)
_IN_SCHEMA = (  # constraints the JSON Schema states in full
    str,
    FieldInfo,
    annotated_types.Ge,
    annotated_types.Gt,
    annotated_types.Le,
    annotated_types.Lt,
    annotated_types.Interval,
    annotated_types.Len,
    annotated_types.MaxLen,
    annotated_types.MinLen,
    annotated_types.MultipleOf,
)


def is_plain(kind: Any, *, given: bool) -> bool:
    """Whether JSON data is already what the hint asks for, or (`given`) such an answer already is JSON data.

    An open part (`Any`, a bare `dict`) takes any JSON, but an answer may hold anything there.
    """
    if kind in _SCALARS:
        return True
    if kind in (Any, list, dict):
        return not given
    inner = get_args(kind)
    match get_origin(kind):
        case origin if origin is Annotated:
            return is_plain(inner[0], given=given) and all(isinstance(m, _IN_SCHEMA) for m in inner[1:])
        case origin if origin is Literal:
            return all(type(value) in _SCALARS for value in inner)
        case origin if origin in (Union, UnionType):
            return all(is_plain(each, given=given) for each in inner)
        case origin if origin is list:
            return is_plain(inner[0], given=given)
        case origin if origin is dict:
            return inner[0] is str and is_plain(inner[1], given=given)
    return False
