"""Which policies are in force, and who changes that?"""

from collections.abc import Sequence

from holdfast.config import Config
from holdfast.gateway import policies
from holdfast.gateway.history import History
from holdfast.gateway.operators import need_operator
from holdfast.model.call import Principal
from holdfast.policy import Bundle, Report
from holdfast.ports import Bundles, Ports, Promoted


class PolicyDesk:
    def __init__(self, config: Config, ports: Ports, bundles: Bundles, history: History) -> None:
        self._config, self._ports, self._bundles, self._history = config, ports, bundles, history

    @property
    def version(self) -> str:
        return self._ports.policy.version

    async def open(self) -> None:
        """Put the configured policies in force where none ever were."""
        if self._ports.promotion is not None:
            await policies.first_start(self._config, self._bundles, self._ports.catalog)
            await self.follow()

    async def follow(self) -> None:
        """Take over what was promoted in any process."""
        if self._ports.promotion is not None:
            await self._ports.promotion.follow()

    def refit(self) -> None:
        """The catalog has changed."""
        policies.refit(self._ports.policy)

    async def promote(self, by: Principal, bundle: Bundle, note: str = "") -> bool:
        """Put a bundle in force everywhere; False when it is already, ConfigError when it cannot be."""
        need_operator(by, self._ports.people)
        await self._history.require(bundle.version)
        done = await policies.promote(bundle, self._ports.catalog, self._bundles, by.user, note)
        await self.follow()
        return done

    async def rollback(self, by: Principal, note: str = "") -> Promoted:
        """Go back to the bundle that was in force before this one."""
        need_operator(by, self._ports.people)
        back = await policies.rollback(self._bundles, by.user, note)
        await self.follow()
        return back

    async def promotions(self) -> Sequence[Promoted]:
        """Every promotion, newest first."""
        return await self._bundles.list()

    def examine(self, bundle: Bundle) -> Report:
        """What is in a bundle, and what keeps it from being put in force here."""
        return policies.examine(bundle, self._ports.catalog)

    def notes(self) -> list[str]:
        """What an operator should know about the policies in force."""
        return policies.notes(self._config, self._ports.policy)
