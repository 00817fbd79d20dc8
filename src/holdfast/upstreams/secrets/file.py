"""A secret in a file, read again when the file is another one or was written to.

That is how secrets reach a container: the mounted file is replaced while the gateway runs.
"""

import os
from pathlib import Path

from holdfast.model.errors import SecretError
from holdfast.model.secret import Secret
from holdfast.upstreams.secrets.reading import LONGEST, secret

Mark = tuple[int, int, int, int]
"""What differs once a file was replaced or written to."""


class FileSecret:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[Mark, Secret] | None = None

    async def read(self) -> Secret:
        return self._looked()

    def _looked(self) -> Secret:
        try:
            now = _mark(os.stat(self._path))
            if self._seen is not None and self._seen[0] == now:
                return self._seen[1]
            with self._path.open("rb") as file:
                mark = _mark(os.fstat(file.fileno()))  # of what is read, not of what has come in its place
                raw = file.read(4 * LONGEST + 1)
        except OSError as error:
            said = (error.strerror or type(error).__name__).lower()
            raise SecretError(f"the file '{self._path.name}' cannot be read: {said}") from None
        try:
            found = secret(raw.decode(), version=str(mark[1]))
        except UnicodeDecodeError:
            raise SecretError(f"the file '{self._path.name}' is not UTF-8 text") from None
        self._seen = mark, found
        return found

    async def close(self) -> None: ...


def _mark(about: os.stat_result) -> Mark:
    return about.st_ino, about.st_mtime_ns, about.st_size, about.st_dev
