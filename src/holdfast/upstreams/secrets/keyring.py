"""A secret in the keyring of the operating system, where the package `keyring` is installed."""

import asyncio
import importlib
from typing import Any

from holdfast.model.errors import SecretError
from holdfast.model.secret import Secret
from holdfast.upstreams.secrets.reading import secret


class KeyringSecret:
    def __init__(self, service: str, user: str) -> None:
        self._service, self._user = service, user

    async def read(self) -> Secret:
        text = await asyncio.to_thread(self._kept)
        if text is None:
            raise SecretError(
                f"the keyring has nothing for service {self._service!r} and user {self._user!r}; "
                f"run 'keyring set {self._service} {self._user}'"
            )
        return secret(text)

    def _kept(self) -> str | None:
        try:
            ring: Any = importlib.import_module("keyring")
        except ImportError:
            raise SecretError(
                "the package 'keyring' is not installed; run 'pip install keyring', or use another provider"
            ) from None
        try:
            found = ring.get_password(self._service, self._user)
        except Exception as error:  # every backend has errors of its own, whose texts nobody vouches for
            none = type(error).__name__ == "NoKeyringError"
            said = "this machine has none; use another provider" if none else "it is locked or broken"
            raise SecretError(f"the keyring cannot be used: {said}", passing=not none) from None
        return found if isinstance(found, str) else None

    async def close(self) -> None: ...
