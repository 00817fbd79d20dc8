"""How is the store of a configuration copied, and how put back?"""

from pathlib import Path

from holdfast.config import Config
from holdfast.gateway import engines
from holdfast.gateway.storing import root_of
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden, StoreError
from holdfast.ports import People, Ports
from holdfast.stores.backup import take as taking
from holdfast.stores.backup.archive import opened
from holdfast.stores.backup.life import LIVES, Life
from holdfast.stores.backup.manifest import PURPOSE, Manifest
from holdfast.stores.backup.restore import Restored
from holdfast.stores.backup.restore import restore as put_back
from holdfast.stores.keyring import Keyring
from holdfast.system import SystemClock

EVERYBODY = "*"


async def take(config: Config, path: Path, ports: Ports) -> Manifest:
    """Write a backup of the configured store."""
    source = await engines.store(config)
    try:
        return await taking.take(
            source, path, ports.clock.now(), lambda raw: ports.secrets.sign(EVERYBODY, PURPOSE, raw)
        )
    finally:
        await source.close()


async def restore(config: Config, path: Path, by: Principal, people: People) -> tuple[Manifest, Restored]:
    """Put a backup in the place of the configured store; nobody may have that open."""
    if not ("operator" in by.roles or ("user" in by.roles and not people.operated(by.tenant))):
        raise Forbidden(f"{by.user!r} is no operator here; this needs the role 'operator'")
    secrets = _secrets(config)
    with opened(path, lambda raw: secrets.sign(EVERYBODY, PURPOSE, raw)) as backup:
        known = await _lives(config)
        restored = await put_back(engines.vessel(config), backup, known, by.user, SystemClock().now())
        return backup.manifest, restored


async def _lives(config: Config) -> list[Life]:
    """Of the store that is there, where it can be read: it may be put back because it cannot."""
    try:
        source = await engines.store(config)
    except StoreError:
        return []
    try:
        return [Life(*row) for row in await source.all(LIVES)]
    except StoreError:
        return []
    finally:
        await source.close()


def _secrets(config: Config) -> Keyring:
    path = config.beside(".keys")
    if config.store_key is None and not path.exists():
        raise StoreError(
            f"there is no key file '{path}'; a backup does not hold it: put back the one it was made with"
        )
    return Keyring(root_of(config))
