"""What is wrong with a document, where, and which key was probably meant?"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError


def explain(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One line per fault, each with its path; never the value that was given."""
    faults = error.errors(include_url=False, include_input=False)
    return [_line(fault["loc"], fault["type"], fault["msg"], model) for fault in faults]


def nearest(word: str, known: list[str]) -> str:
    """A hint at the known word closest to this one, or at all of them."""
    close = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(sorted(known))}"


def _line(where: tuple[str | int, ...], kind: str, message: str, model: type[BaseModel]) -> str:
    path = ".".join(map(str, where))
    if kind == "extra_forbidden":
        known = sorted({name for part in _parts(model, where[:-1]) for name in part.model_fields})
        return f"'{path}' is not known here; {nearest(str(where[-1]), known)}"
    if kind == "missing":
        return f"'{path}' is missing"
    return f"'{path}': {message[:1].lower()}{message[1:]}"


def _parts(model: type[BaseModel], where: tuple[str | int, ...]) -> list[type[BaseModel]]:
    """The models that could stand at a path; steps that name no field are list indexes or dict keys."""
    found = [model]
    for step in where:
        inner = [
            part
            for one in found
            if isinstance(step, str) and step in one.model_fields
            for part in _models(one.model_fields[step].annotation)
        ]
        found = inner or found
    return found


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        if argument is not Union:
            yield from _models(argument)
