"""Python functions as an upstream.

Async functions run on the loop. Synchronous ones run in threads of their own: a
thread cannot be stopped, so at its deadline the attempt goes on, keeps its slot, and
its late answer settles the operation.
"""

import asyncio
import contextvars
import importlib
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from holdfast.model import defaults
from holdfast.model.answer import Answer
from holdfast.model.errors import ConfigError
from holdfast.model.function import NONE, FunctionTool, toolset
from holdfast.model.invocation import Invocation
from holdfast.ports import Attempt


class FunctionUpstream:
    personal = False
    in_process = True

    def __init__(
        self, tools: Iterable[FunctionTool[..., Any]], concurrency: int = defaults.UPSTREAM_CONCURRENCY
    ) -> None:
        self.tools = tuple(tools)
        self.concurrency = concurrency
        self._by_version = {(t.name, t.version): t for t in self.tools}
        self._threads: ThreadPoolExecutor | None = None

    async def invoke(self, attempt: Attempt) -> Any:
        identity = attempt.tool.contract.identity
        function = self._by_version[(identity.name, identity.version)]
        invocation = Invocation(
            key=attempt.key,
            call_id=attempt.call_id,
            tenant=attempt.tenant,
            trace_id=attempt.trace_id,
            attempt=attempt.number,
            deadline_s=attempt.deadline_s,
            traceparent=attempt.traceparent,
            tracestate=attempt.tracestate,
        )
        given = attempt.credentials
        secrets = {one.credential.name: one.text for one in given} if given else NONE
        arguments = function.prepare(attempt.arguments, invocation, secrets)
        try:
            if function.is_async:
                said = function.render(await function.function(**arguments))
            else:
                said = function.render(await self._in_thread(function, arguments))
            return Answer(data=said, cost=invocation.costs) if invocation.costs else said
        except SystemExit as error:  # asyncio would let it end the whole gateway
            raise RuntimeError(f"{identity.name!r} tried to exit with {error.code!r}") from error

    async def _in_thread(self, function: FunctionTool[..., Any], arguments: dict[str, Any]) -> Any:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix="holdfast-function")
        context = contextvars.copy_context()
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: context.run(function.function, **arguments)
        )
        while True:
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                if work.done():
                    raise
                # The thread goes on whatever we do: wait it out, so that its answer is not lost.

    async def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def load(reference: str, folder: Path) -> list[FunctionTool[..., Any]]:
    """The tools behind `module:object`; the folder of the configuration is searched first."""
    module_name, _, name = reference.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        source: Any = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(
            f"cannot import {module_name!r} for 'functions': {type(error).__name__}: {error}"
        ) from error
    try:
        source = getattr(source, name)
    except AttributeError:
        raise ConfigError(f"module {module_name!r} has no {name!r}; name a tool or a list of tools") from None
    if callable(source) and not isinstance(source, FunctionTool | type):
        source = source()
    return toolset(source)
