"""Which secrets open the door for one request, and what if they do not?

An opening belongs to one request: it knows which secret was presented, so that a refusal makes exactly that
one be read anew, once, whatever others have learnt meanwhile.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast.model.secret import Secret, filled, references
from holdfast.ports import Injected
from holdfast.upstreams.secrets.wallet import Wallet


class Opening(Protocol):
    async def headers(self) -> Mapping[str, str]:
        """In lower case; raises NoEffect."""
        ...

    async def renewed(self) -> bool:
        """The server refused them: whether there are others now."""
        ...

    @property
    def shown(self) -> Iterable[str]:
        """The secrets it has presented so far."""
        ...


class Standing:
    """Values of a configuration that hold `${secret:NAME}`, such as the headers of an upstream."""

    def __init__(self, wallet: Wallet, templates: Mapping[str, str]) -> None:
        self._wallet, self.templates = wallet, dict(templates)
        self.names = tuple(dict.fromkeys(name for text in templates.values() for name in references(text)))

    async def secrets(self) -> dict[str, Secret]:
        """Raises NoEffect."""
        return {name: await self._wallet.shared(name) for name in self.names}

    async def values(self) -> dict[str, str]:
        return self.filled(await self.secrets())

    def filled(self, secrets: Mapping[str, Secret]) -> dict[str, str]:
        texts = {name: secret.text for name, secret in secrets.items()}
        return {name: filled(text, texts) for name, text in self.templates.items()}

    def opening(self) -> "StandingOpening":
        return StandingOpening(self, self._wallet)


class StandingOpening:
    def __init__(self, standing: Standing, wallet: Wallet) -> None:
        self._standing, self._wallet = standing, wallet
        self._secrets: dict[str, Secret] = {}
        self._shown: dict[str, None] = {}

    async def headers(self) -> Mapping[str, str]:
        if not self._secrets:
            self._secrets = await self._standing.secrets()
        self._shown |= dict.fromkeys(secret.text for secret in self._secrets.values())
        return {name.lower(): value for name, value in self._standing.filled(self._secrets).items()}

    async def renewed(self) -> bool:
        changed = False
        for name, secret in self._secrets.items():
            if (other := await self._wallet.renew(name, secret)) is not None:
                self._secrets[name], changed = other, True
        return changed

    @property
    def shown(self) -> Iterable[str]:
        return self._shown


class InjectedOpening:
    """What a contract says goes with a call as headers."""

    def __init__(self, injected: Iterable[Injected]) -> None:
        self._injected = list(injected)
        self._shown: dict[str, None] = {}

    async def headers(self) -> Mapping[str, str]:
        self._shown |= dict.fromkeys(one.secret.text for one in self._injected)
        return {one.credential.name.lower(): one.text for one in self._injected}

    async def renewed(self) -> bool:
        changed = False
        for index, one in enumerate(self._injected):
            if (other := await one.renew(one.secret)) is not None:
                self._injected[index] = Injected(credential=one.credential, secret=other, renew=one.renew)
                changed = True
        return changed

    @property
    def shown(self) -> Iterable[str]:
        return self._shown
