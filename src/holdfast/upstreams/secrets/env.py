"""A secret in a variable of the gateway's own environment."""

import os
from collections.abc import Mapping

from holdfast.model.errors import SecretError
from holdfast.model.secret import Secret
from holdfast.upstreams.secrets.reading import secret


class EnvSecret:
    def __init__(self, variable: str, environ: Mapping[str, str] | None = None) -> None:
        self._variable = variable
        self._environ = os.environ if environ is None else environ

    async def read(self) -> Secret:
        text = self._environ.get(self._variable)
        if text is None:
            raise SecretError(f"the environment variable {self._variable!r} is not set; set it")
        return secret(text)

    async def close(self) -> None: ...
