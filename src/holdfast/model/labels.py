"""What do the results of a tool carry?

The class of the data it touches, from confidential on, and the labels that its contract names (OBS-6).
"""

import re
from collections.abc import Iterable

from holdfast.model.vocabulary import DataClass

LABEL = re.compile(r"[a-z0-9][a-z0-9._:-]{0,63}")
CLASSES = tuple(one.value for one in DataClass if one.at_least(DataClass.CONFIDENTIAL))
"""Classes that are labels. Each stands for those before it as well: what is secret is also confidential."""


def carried(data_class: DataClass, named: Iterable[str]) -> tuple[str, ...]:
    classed = (data_class.value,) if data_class.value in CLASSES else ()
    return tuple(dict.fromkeys((*classed, *named)))


def implied(labels: Iterable[str]) -> frozenset[str]:
    """With what they stand for as well."""
    held = frozenset(labels)
    ranks = [CLASSES.index(label) for label in held if label in CLASSES]
    return held | frozenset(CLASSES[: max(ranks) + 1]) if ranks else held
