"""Which policies does a configuration ask for, and how are they put in force?"""

import logging
from collections.abc import Callable
from pathlib import Path

from holdfast.config import Config
from holdfast.model.errors import ConfigError, HoldfastError
from holdfast.model.vocabulary import Environment
from holdfast.policy import BadBundle, Bundle, CedarPolicy, DenyAll, Report, check, load, starter
from holdfast.policy.check import crowded
from holdfast.policy.facts import Roles
from holdfast.policy.schema import Region, subjects
from holdfast.policy.served import Served
from holdfast.ports import Bundles, Catalog, Ids, Policy, Promoted

log = logging.getLogger(__name__)

FIRST = "the configured folder, at the first start"


def builder(config: Config, catalog: Catalog, ids: Ids, roles: Roles) -> Callable[[Bundle], CedarPolicy]:
    """How a bundle becomes a policy of this gateway."""

    def build(bundle: Bundle) -> CedarPolicy:
        return CedarPolicy(
            bundle,
            catalog,
            ids,
            threshold=config.trust_threshold,
            critical_scopes=config.critical_scopes,
            region=Region(config.facts.residency, config.facts.jurisdiction),
            regions={
                name: Region(upstream.residency, upstream.jurisdiction)
                for name, upstream in config.upstreams.items()
            },
            roles=roles,
        )

    return build


def served(config: Config, bundles: Bundles, ids: Ids, build: Callable[[Bundle], CedarPolicy]) -> Served:
    return Served(_otherwise(config, ids, build), build, bundles)


def _otherwise(config: Config, ids: Ids, build: Callable[[Bundle], CedarPolicy]) -> Policy:
    """What holds while nothing is promoted."""
    developing = config.environment is Environment.DEV and config.auth.mode == "local"
    if developing and config.policies is None:
        return build(starter())
    return DenyAll(ids, build(Bundle("none", {})).asked)


def folder(config: Config, named: Path | None = None) -> Path:
    """The folder a person names, else the configured one."""
    if named is not None:
        return named
    if config.policies is None:
        raise ConfigError("no folder of policies is configured; name one, or set 'policies' in the file")
    return config.folder / config.policies


def read(path: Path) -> Bundle:
    """Raises ConfigError when there is nothing to read."""
    try:
        return load(path)
    except BadBundle as error:
        raise ConfigError(str(error)) from None


def examine(bundle: Bundle, catalog: Catalog) -> Report:
    return check(bundle, subjects(catalog.list()))


def refuse_problems(bundle: Bundle, report: Report) -> None:
    """Raises ConfigError with everything that keeps it from being promoted."""
    if not report.ok:
        told = [f"the policies {bundle.name!r} cannot be put in force", *map(str, report.problems)]
        raise ConfigError("\n  ".join(told))


async def first_start(config: Config, bundles: Bundles, catalog: Catalog) -> None:
    """Promote the configured folder where nothing was ever promoted."""
    if config.policies is None or await bundles.active_version() is not None:
        return
    bundle = read(folder(config))
    refuse_problems(bundle, examine(bundle, catalog))
    await bundles.promote(bundle.version, bundle.content, "holdfast", FIRST, first=True)


async def promote(bundle: Bundle, catalog: Catalog, bundles: Bundles, by: str, note: str) -> bool:
    refuse_problems(bundle, examine(bundle, catalog))
    return await bundles.promote(bundle.version, bundle.content, by, note)


async def rollback(bundles: Bundles, by: str, note: str) -> Promoted:
    back = await bundles.rollback(by, note)
    if back is None:
        raise HoldfastError("there is nothing to go back to: no other bundle was promoted before")
    return back


def refit(policy: Policy) -> None:
    """Tools were found since the policies were read: fit them to what is there now."""
    current = policy.current if isinstance(policy, Served) else policy
    if isinstance(current, CedarPolicy):
        current.read_catalog()


def notes(config: Config, policy: Policy) -> list[str]:
    """What is to be said about the policies in force, at the start and by `doctor`."""
    current = policy.current if isinstance(policy, Served) else policy
    told = []
    if isinstance(current, DenyAll):
        told.append("no policy is loaded: every call is refused; name a folder of them under 'policies'")
    elif current.version.startswith("starter/"):
        told.append("the starter policy is in force: for development on this machine only")
    if isinstance(current, CedarPolicy):
        shut = "; the tools it covers are shut until another bundle is promoted"
        told += [f"policy {current.version}: {problem}{shut}" for problem in current.problems]
        told += crowded(current.policies, current.subjects)
    if (changes := _unpromoted(config, policy.version)) is not None:
        told.append(changes)
    return told


def _unpromoted(config: Config, version: str) -> str | None:
    """What to tell when the folder is not what is in force."""
    if config.policies is None:
        return None
    try:
        bundle = load(folder(config))
    except BadBundle as error:
        return f"the configured policies cannot be read: {error}"
    if bundle.version == version:
        return None
    return (
        f"the folder {config.policies!r} has changes that are not in force ({bundle.version}, in force is "
        f"{version}); look at them with 'holdfast policy check', then 'holdfast policy promote'"
    )
