"""Where are the gateway's own secrets kept?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

from typing import Annotated, Any

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from holdfast.config.section import Name, Section
from holdfast.model import secret

SecretName = Annotated[str, StringConstraints(pattern=f"^{secret.NAME}$")]
Word = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ONE = ("env", "file", "command", "vault", "keyring")


class Vault(Section):
    address: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]
    """Of the vault, such as `https://vault.internal:8200`."""
    mount: Word = "secret"
    """Where its KV store, version 2, is mounted."""
    path: Word
    """The secret's path there."""
    field: Word = "value"
    """Which field of it."""
    token: Annotated[str, StringConstraints(pattern=r"^(file|env):\S+$")] = "env:VAULT_TOKEN"
    """Opens the vault: `env:NAME` or `file:PATH`, read anew each time."""
    namespace: Word | None = None
    """The namespace there, where it has any."""
    version: int | None = Field(default=None, ge=1)
    """One version for good; the newest when left out."""


class Keyring(Section):
    service: Word
    """The service's name in the keyring of this machine."""
    user: Word
    """The user's name there."""


class Secret(Section):
    env: Variable | None = None
    """In this variable of the gateway's environment; looked at with each use."""
    file: Word | None = None
    """In this file, beside the config file; read again when it was replaced or written to."""
    command: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """What this program prints: its words one by one, no shell."""
    vault: Vault | None = None
    """In HashiCorp Vault or OpenBao."""
    keyring: Keyring | None = None
    """In the keyring of the operating system; needs the package `keyring`."""
    ttl_s: float | None = Field(default=None, ge=0)
    """Seconds until it is read again: 300 when left out; `env` and `file` are looked at with each use."""
    expires: AwareDatetime | None = None
    """When it ends, with a time zone; from then on calls that need it are refused and nothing is sent."""
    tenant: Name | None = None
    """The only tenant whose calls may use it; every tenant's when left out."""

    @model_validator(mode="before")
    @classmethod
    def _one_provider(cls, value: Any) -> Any:
        given = [name for name in ONE if isinstance(value, dict) and value.get(name) is not None]
        if isinstance(value, dict) and len(given) != 1:
            raise ValueError(f"name either {', '.join(map(repr, ONE[:-1]))} or {ONE[-1]!r}")
        return value
