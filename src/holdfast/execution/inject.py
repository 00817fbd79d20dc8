"""Which secrets go with an attempt?

The last thing before the tool is asked: every gate has passed and the claim is ours (AUT-3). A secret that
has ended, or is another tenant's, ends the attempt here, with nothing sent and the key free again (AUT-8).
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.execution.result import Broke, Ran, Result, Trace
from holdfast.execution.runtime import Runtime
from holdfast.model.call import Call
from holdfast.model.contract import Credential
from holdfast.model.errors import Code, NoEffect
from holdfast.model.purge import Purge
from holdfast.model.redaction import CREDENTIAL
from holdfast.model.secret import Secret
from holdfast.ports import Credentials, Injected


async def injected(call: Call, runtime: Runtime) -> tuple[Injected, ...] | Broke:
    wallet = runtime.credentials
    if wallet is None:
        return _refused(f"{call.tool.contract.tool!r} needs a credential, and none is configured here")
    taking = asyncio.ensure_future(_taken(call, wallet))
    try:
        if not await runtime.clock.until(taking, max(call.deadline - runtime.clock.monotonic(), 0.0)):
            text = "its credential did not come before the deadline; nothing was sent"
            return Broke(trace=Trace.NONE, code=Code.TIMEOUT, message=text)
        return taking.result()
    except NoEffect as error:
        return Broke(trace=Trace.NONE, code=error.code, message=str(error))
    finally:
        taking.cancel()


async def _taken(call: Call, wallet: Credentials) -> tuple[Injected, ...]:
    tenant, given = call.principal.tenant, []
    for credential in chosen(call.tool.contract.security.credentials, tenant, wallet):
        name = credential.secret
        secret = await wallet.take(name, tenant)
        _noted(call, secret)

        async def renew(refused: Secret, name: str = name) -> Secret | None:
            other = await wallet.renew(name, refused)
            if other is not None:
                _noted(call, other)
            return other

        given.append(Injected(credential=credential, secret=secret, renew=renew))
    return tuple(given)


def chosen(credentials: Sequence[Credential], tenant: str, wallet: Credentials) -> Iterable[Credential]:
    """One for each place: the tenant's own, else one for everybody; another tenant's is refused later."""
    places: dict[tuple[str, str], tuple[int, Credential]] = {}
    for credential in credentials:
        place, whose = (credential.place, credential.name.lower()), wallet.tenant(credential.secret)
        worth = 2 if whose == tenant else 1 if whose is None else 0
        if place not in places or worth > places[place][0]:
            places[place] = worth, credential
    return [credential for _, credential in places.values()]


def _noted(call: Call, secret: Secret) -> None:
    if secret.text not in call.injected:
        call.injected = (*call.injected, secret.text)


def _refused(why: str) -> Broke:
    return Broke(trace=Trace.NONE, code=Code.PERMISSION_DENIED, message=f"{why}; nothing was sent")


def without(result: Result, secrets: Sequence[str]) -> Result:
    """What an upstream said, without what it was told in confidence."""
    purge = Purge(secrets, CREDENTIAL)
    if isinstance(result, Ran):
        return replace(
            result,
            value=purge.data(result.value),
            native=None if result.native is None else purge.data(dict(result.native)),
            error=None if result.error is None else purge.text(result.error),
        )
    return replace(
        result,
        message=purge.text(result.message),
        native=None if result.native is None else purge.data(dict(result.native)),
    )
