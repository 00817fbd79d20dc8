"""What is a secret of a channel now? It is read when it is used, and never kept."""

from typing import TYPE_CHECKING

from holdfast.model.secret import filled, references

if TYPE_CHECKING:
    from holdfast.upstreams.secrets.wallet import Wallet


class Pointed:
    """A text of the configuration with `${secret:NAME}` in it, or one that was read once."""

    def __init__(self, text: str, wallet: "Wallet | None") -> None:
        self._text, self._wallet = text, wallet
        self._names = tuple(references(text))

    async def read(self) -> str:
        """Raises NoEffect where it cannot be had now."""
        if self._wallet is None:
            return filled(self._text, {})
        return filled(self._text, {name: (await self._wallet.shared(name)).text for name in self._names})
