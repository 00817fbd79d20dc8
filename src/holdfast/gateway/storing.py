"""Which store does a configuration name? SQLite comes with Python; PostgreSQL's driver is an extra."""

import os
from functools import partial
from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.model.errors import ConfigError
from holdfast.ports import Clock
from holdfast.stores.keyring import parse_root, read_root, root_secret
from holdfast.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from holdfast.stores.postgres.store import PostgresStore


def store_of(config: Config, machine: Clock) -> "SqliteStore | PostgresStore":
    """The configured store, not open yet. Its `clock` tells the time that counts there."""
    approval_s, root = config.approvals.expire_s, partial(root_of, config)
    if not config.on_postgres:
        return SqliteStore(config.store_path, machine, approval_s=approval_s, root=root, one_clock=True)
    try:
        from holdfast.stores.postgres.store import PostgresStore
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise ConfigError(
            "store: PostgreSQL needs the driver 'asyncpg'; install 'holdfast[postgres]'"
        ) from None
    return PostgresStore(config.store, root, machine, approval_s=approval_s)


def root_of(config: Config) -> bytes:
    """The secret that protects what is stored: the one that is named, or a file beside the store."""
    if config.store_key is None:
        return root_secret(config.beside(".keys"))
    kind, _, place = config.store_key.partition(":")
    if kind == "env":
        root = parse_root(os.environ.get(place, ""))
        if root is None:
            raise ConfigError(
                f"store_key: the variable '{place}' must hold 64 hexadecimal digits; {_MAKE_ONE}"
            )
        return root
    path = config.folder / place
    if not path.exists():
        raise ConfigError(f"store_key: there is no file '{path}'; {_MAKE_ONE}, and chmod 600 it")
    return read_root(path)


_MAKE_ONE = "make them once with: openssl rand -hex 32"
