"""What do these functions offer the catalog?"""

from collections.abc import Iterable
from typing import Any

from holdfast.catalog.admission import Offer, refusal
from holdfast.model.errors import AdmissionError
from holdfast.model.function import FunctionTool


def offers(namespace: str, tools: Iterable[FunctionTool[..., Any]]) -> list[Offer]:
    """One offer per function; raises one AdmissionError for all that cannot be described."""
    made: list[Offer] = []
    refused: dict[str, list[str]] = {}
    for function in tools:
        try:
            contract = function.build(namespace)
        except AdmissionError as error:
            refused.setdefault(f"{namespace}.{function.name}", []).extend(error.reasons)
        else:
            made.append(Offer(contract=contract, upstream=namespace, checks=function.checks))
    if refused:
        raise refusal(refused)
    return made
