"""A secret that a program prints, such as the command-line client of a password store.

No shell: the words are handed over as they are. What the program writes is bounded, its time too, and of what
it says when it fails nothing is kept but how it ended: it may be the secret.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.model import defaults
from holdfast.model.errors import SecretError
from holdfast.model.secret import Secret
from holdfast.model.timeout import timeout
from holdfast.upstreams.secrets.reading import LONGEST, secret

MOST_BYTES = 4 * LONGEST
"""No character takes more than four bytes."""


class CommandSecret:
    def __init__(
        self, argv: Sequence[str], folder: Path | None = None, deadline_s: float = defaults.SECRET_READ_S
    ) -> None:
        self._argv, self._folder, self._deadline_s = tuple(argv), folder, deadline_s

    async def read(self) -> Secret:
        process = await self._started()
        try:
            async with timeout(self._deadline_s):
                raw = await self._printed(process)
                status = await process.wait()
        except TimeoutError:
            said = f"{self._name} did not end within {self._deadline_s:g} s"
            raise SecretError(said, passing=True) from None
        finally:
            await _ended(process)
        if status != 0:
            raise SecretError(f"{self._name} ended with status {status}", passing=True)
        try:
            return secret(raw.decode())
        except UnicodeDecodeError:
            raise SecretError(f"what {self._name} printed is not UTF-8 text") from None

    @property
    def _name(self) -> str:
        return f"the program {self._argv[0]!r}"

    async def _started(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self._folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            said = (getattr(error, "strerror", None) or type(error).__name__).lower()
            raise SecretError(f"{self._name} cannot be started: {said}") from None

    async def _printed(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None  # noqa: S101  # it was asked for
        held = bytearray()
        while part := await process.stdout.read(65_536):
            held += part
            if len(held) > MOST_BYTES:
                raise SecretError(f"{self._name} printed more than {MOST_BYTES} bytes")
        return bytes(held)

    async def close(self) -> None: ...


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Nothing it started is left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    if (transport := getattr(process, "_transport", None)) is not None:
        transport.close()
