"""Builds what keeps the gateway's own secrets, from the configuration; nothing is read before it is used."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.config.secrets import Secret, Vault
from holdfast.gateway.outgoing import Egress
from holdfast.identity.subject import Subjects
from holdfast.model import defaults
from holdfast.model.contract import Contract
from holdfast.model.errors import ConfigError
from holdfast.model.secret import filled, references
from holdfast.model.token import Signer
from holdfast.ports import Clock, SecretProvider

if TYPE_CHECKING:
    from holdfast.upstreams.secrets.opening import Standing
    from holdfast.upstreams.secrets.wallet import Wallet


@dataclass(frozen=True, slots=True)
class Proofs:
    """What opens doors outside: the gateway's own secrets, and what it says of its callers."""

    wallet: "Wallet | None" = None
    subjects: Subjects | None = None
    now: Callable[[], float] = time.time


def proofs(config: Config, clock: Clock, egress: Egress, signer: Signer) -> Proofs:
    subjects = Subjects(signer, (config.base_url or "").rstrip("/"), clock.now)
    return Proofs(wallet(config, clock, egress), subjects, clock.now)


def wallet(config: Config, clock: Clock, egress: Egress) -> "Wallet | None":
    """None where no secret is named."""
    if not config.secrets:
        return None
    from holdfast.upstreams.secrets.wallet import Entry, Wallet

    entries = {
        name: Entry(
            provider=_provider(name, said, config, clock, egress),
            ttl_s=_ttl(said),
            tenant=said.tenant,
            expires_at=None if said.expires is None else said.expires.timestamp(),
        )
        for name, said in config.secrets.items()
    }
    return Wallet(entries, now=clock.now, monotonic=clock.monotonic)


def _ttl(said: Secret) -> float:
    if said.ttl_s is not None:
        return said.ttl_s
    looked_at = said.env is not None or said.file is not None
    return 0.0 if looked_at else defaults.SECRET_TTL_S


def _provider(name: str, said: Secret, config: Config, clock: Clock, egress: Egress) -> SecretProvider:
    if said.env is not None:
        return _variable(said.env)
    if said.file is not None:
        return _file(config.folder / said.file)
    if said.command is not None:
        from holdfast.upstreams.secrets.command import CommandSecret

        return CommandSecret(said.command, config.folder)
    if said.keyring is not None:
        from holdfast.upstreams.secrets.keyring import KeyringSecret

        return KeyringSecret(said.keyring.service, said.keyring.user)
    assert said.vault is not None  # noqa: S101  # one of them is there
    return _vault(name, said.vault, config, clock, egress)


def _variable(name: str) -> SecretProvider:
    from holdfast.upstreams.secrets.env import EnvSecret

    return EnvSecret(name)


def _file(path: Path) -> SecretProvider:
    from holdfast.upstreams.secrets.file import FileSecret

    return FileSecret(path)


def _vault(name: str, said: Vault, config: Config, clock: Clock, egress: Egress) -> SecretProvider:
    from holdfast.upstreams.secrets.vault import VaultSecret

    where, _, place = said.token.partition(":")
    return VaultSecret(
        said.address,
        said.mount,
        said.path,
        said.field,
        _variable(place) if where == "env" else _file(config.folder / place),
        egress.outgoing(f"secrets.{name}", said.address),
        namespace=said.namespace,
        version=said.version,
        now=clock.now,
    )


def unknown(contracts: Iterable[Contract], config: Config) -> Iterator[str]:
    """What contracts want that the configuration does not have: calls of such tools are refused."""
    for contract in contracts:
        for credential in contract.security.credentials:
            if credential.secret not in config.secrets:
                text = f"names the secret {credential.secret!r}, which is not under 'secrets'"
                yield f"{contract.tool}: {text}; its calls are refused"


def standing(values: Mapping[str, str], wallet: "Wallet | None") -> tuple[dict[str, str], "Standing | None"]:
    """What of headers or variables is plain, and what has secrets in it."""
    secret = {name: text for name, text in values.items() if any(references(text))}
    plain = {name: filled(text, {}) for name, text in values.items() if name not in secret}
    if not secret:
        return plain, None
    if wallet is None:
        named = ", ".join(map(repr, secret))
        raise ConfigError(f"there are no secrets for {named}; add them under 'secrets'")
    from holdfast.upstreams.secrets.opening import Standing

    return plain, Standing(wallet, secret)
