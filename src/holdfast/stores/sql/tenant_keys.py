"""How does a tenant get its key while others call? Read as all else is, and made as all else is written."""

from holdfast.stores.sql.engine import Reader, Transaction, Writer

FIND = "SELECT wrapped FROM tenant_key WHERE tenant = ?"
KEEP = "INSERT INTO tenant_key VALUES (?, ?) ON CONFLICT DO NOTHING"


class SqlTenantKeys:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def keep(self, tenant: str, wrapped: bytes) -> bytes:
        """The tenant's wrapped key: the one kept before, else `wrapped`, kept from now on."""
        found = await self._reader.all(tenant, FIND, (tenant,))
        if found:  # nearly always: who only reads waits for nobody who writes
            return bytes(found[0][0])
        return await self._writer.submit(tenant, True, _kept, tenant, wrapped)


async def _kept(transaction: Transaction, tenant: str, wrapped: bytes) -> bytes:
    found = await transaction.one(FIND, (tenant,))
    if found is None:
        await transaction.run(KEEP, (tenant, wrapped))
        found = await transaction.one(FIND, (tenant,))  # of several that made one, all take the first
    return wrapped if found is None else bytes(found[0])
