"""Who is asked when a tool cannot answer? What the configuration says, made ready for calls; EXE-4."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast.config import Config
from holdfast.config.fallbacks import Fallback, FallbackTool
from holdfast.model import defaults
from holdfast.model.errors import ConfigError
from holdfast.model.expression import ExpressionError, Template
from holdfast.model.stage import AnswerFor
from holdfast.model.tool import ARGS
from holdfast.model.vocabulary import Effect
from holdfast.ports import Catalog, Listing

CRITICAL = frozenset({Effect.CRITICAL_MUTATION, Effect.HIGH_RISK_EXTERNAL})


@dataclass(frozen=True, slots=True)
class Level:
    tool: str
    arguments: Template | None
    """Of this tool, from those of the first; None where they are the same."""
    decrement: float


@dataclass(frozen=True, slots=True)
class Ladder:
    """The tools of one capability, in the order they are asked."""

    capability: str
    levels: tuple[Level, ...]
    then: str

    @property
    def first(self) -> str:
        return self.levels[0].tool

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple([level.tool for level in self.levels])

    @property
    def last_decrement(self) -> float:
        """Of what is told when no tool answered."""
        return _decrement(len(self.levels))

    def number(self, tool: str | None) -> int | None:
        """At which level a tool is."""
        return next((number for number, level in enumerate(self.levels) if level.tool == tool), None)


def ladders(config: Config) -> dict[str, Ladder]:
    """By the first tool of each."""
    found = [_ladder(name, said) for name, said in config.fallbacks.items() if said is not None]
    return {ladder.first: ladder for ladder in found}


def capabilities(config: Config) -> dict[str, AnswerFor]:
    """What each tool can do that another could do in its stead."""
    return {
        level.tool: AnswerFor(name, tuple([one.tool for one in said.tools]))
        for name, said in config.fallbacks.items()
        if said is not None and len(said.tools) > 1
        for level in said.tools
    }


def _ladder(name: str, said: Fallback) -> Ladder:
    levels = [_level(name, number, one) for number, one in enumerate(said.tools)]
    return Ladder(name, tuple(levels), said.then)


def _level(name: str, number: int, said: FallbackTool) -> Level:
    try:
        arguments = None if said.arguments is None else Template(said.arguments, ARGS)
    except ExpressionError as error:
        raise ConfigError(f"fallbacks.{name}.tools.{number}.arguments: {error}") from error
    lost = _decrement(number) if said.confidence is None else round(1 - said.confidence, 6)
    return Level(said.tool, arguments, lost)


def _decrement(number: int) -> float:
    return round(min(number * defaults.FALLBACK_CONFIDENCE, 1.0), 6)


def check(ladders: Mapping[str, Ladder], catalog: Catalog) -> None:
    """Raise ConfigError for what would be wrong however often it is tried."""
    for ladder in ladders.values():
        found = [
            listing for level in ladder.levels if (listing := catalog.find(level.tool, None)) is not None
        ]
        for fault in _faults(ladder, found):
            raise ConfigError(f"fallbacks.{ladder.capability}: {fault}")


def _faults(ladder: Ladder, found: list[Listing]) -> Iterator[str]:
    writing = [listing.tool.contract.tool for listing in found if listing.tool.writes]
    if writing and len(writing) < len(found):
        reading = next(one.tool.contract.tool for one in found if not one.tool.writes)
        yield f"{reading!r} reads and {writing[0]!r} writes; a tool falls back on its like"
    for listing in found:
        if listing.tool.session is not None and len(ladder.levels) > 1:
            tool = listing.tool.contract.tool
            yield f"{tool!r} works in a session of its upstream, where no other tool is; leave it out"
    if ladder.then == "person" and found and not writing:
        reading = found[0].tool.contract.tool
        yield f"'then: person' is for writes, and {reading!r} reads; use 'stale' or 'refuse'"
    if ladder.then != "stale":
        return
    if writing:
        yield f"'then: stale' is for reads, and {writing[0]!r} writes; use 'person' or 'refuse'"
    for listing in found:
        contract = listing.tool.contract
        if contract.tool == ladder.first and contract.runtime.cache_ttl_s is None:
            yield f"'then: stale' tells what {ladder.first!r} said last; give it a 'cache_ttl_s'"


def reports(config: Config, catalog: Catalog) -> Iterator[str]:
    """What `doctor` should tell."""
    for name, said in config.fallbacks.items():
        for level in () if said is None else said.tools:
            listing = catalog.find(level.tool, None)
            if listing is None:
                yield f"fallbacks.{name}: there is no tool {level.tool!r}, so it is passed over"
            elif name not in listing.tool.contract.identity.tags:
                yield f"fallbacks.{name}: {level.tool!r} has no tag {name!r}; add it to its 'tags'"
    yield from _undeclared(config, catalog)


def _undeclared(config: Config, catalog: Catalog) -> Iterator[str]:
    """Critical capabilities that nobody has thought about."""
    tools: dict[str, str] = {}
    for listing in catalog.list():
        contract = listing.tool.contract
        if contract.effect in CRITICAL:
            tools |= {tag: contract.tool for tag in contract.identity.tags if tag not in tools}
    for tag, tool in sorted(tools.items()):
        if tag not in config.fallbacks:
            said = f"{tool!r} has the critical capability {tag!r}, which declares no fallback"
            yield f"{said}; name its tools under 'fallbacks.{tag}', or write 'none' there"
