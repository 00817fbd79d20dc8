"""Are the words of a closed set what an enum's members are everywhere?"""

import pickle
from copy import deepcopy
from enum import StrEnum

import orjson
import pytest

from holdfast.model.derive import ApprovalMode, MutationClass, Semantics
from holdfast.model.errors import Code
from holdfast.model.limits import Kind, Per
from holdfast.model.observation import Status
from holdfast.model.vocabulary import (
    DataClass,
    Effect,
    Environment,
    Floor,
    KeySource,
    SafetyMode,
    State,
    Undo,
)

SETS: list[type[StrEnum]] = [
    ApprovalMode,
    Code,
    DataClass,
    Effect,
    Environment,
    Floor,
    KeySource,
    Kind,
    MutationClass,
    Per,
    SafetyMode,
    Semantics,
    State,
    Status,
    Undo,
]


@pytest.mark.parametrize("words", SETS)
def test_every_word_is_one_thing_however_it_is_reached(words: type[StrEnum]) -> None:
    assert list(words) == list(words.__members__.values())
    for name, word in words.__members__.items():
        assert getattr(words, name) is words[name] is words(word.value) is word
        assert pickle.loads(pickle.dumps(word)) is deepcopy(word) is word
        assert (str(word), word.value, word.name, repr(word)) == (
            word._value_,
            word._value_,
            name,
            f"<{words.__name__}.{name}: {word._value_!r}>",
        )
        assert orjson.loads(orjson.dumps({"a": word, "b": word.value})) == {"a": word, "b": word}


@pytest.mark.parametrize("words", SETS)
def test_no_word_can_be_changed_added_or_made_up(words: type[StrEnum]) -> None:
    first = next(iter(words))
    with pytest.raises(AttributeError):
        setattr(words, first.name, "else")
    with pytest.raises(AttributeError):
        first.value = "else"  # type: ignore[misc]
    with pytest.raises(ValueError, match="is not a valid"):
        words("no such word")
