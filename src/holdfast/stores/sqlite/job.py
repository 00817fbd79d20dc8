"""What is to be written, and who waits for it?"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holdfast.model.errors import StoreError


class Job(NamedTuple):
    durable: bool
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: asyncio.Future[Any]
    long: bool = False  # it would keep the event loop from others


Answer = tuple["asyncio.Future[Any]", Any, BaseException | None]


def deliver(answers: Sequence[Answer]) -> None:
    for future, answer, failure in answers:
        if future.done():
            continue  # whoever waited was cancelled
        if failure is None:
            future.set_result(answer)
        else:
            future.set_exception(failure)


def all_failed(jobs: Sequence[Job], error: StoreError) -> list[Answer]:
    return [(job.future, None, type(error)(*error.args)) for job in jobs]
