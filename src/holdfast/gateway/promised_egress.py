"""Does an upstream's egress rule keep what its tools' contracts promise?

The gateway sees where it connects to itself. For a tool behind a url that much is known, so a contract that
promises less is not believed; one that says nothing takes on what the upstream's rule says.
"""

from collections.abc import Mapping
from dataclasses import replace

from holdfast.catalog.imports.overlay import Overlay
from holdfast.config import Config
from holdfast.model.vocabulary import Egress

_SAID = {
    "listed": Egress.ALLOWLISTED,
    "private": Egress.PRIVATE,
    "approval": Egress.WITH_APPROVAL,
}


def broken(config: Config, name: str) -> Mapping[str, str]:
    """By what a contract says of its egress: why that does not hold at this upstream."""
    settings = config.upstreams[name]
    if settings.mcp is None or settings.mcp.url is None:
        return {}  # what a program connects to, nobody here sees
    mode = (settings.egress or config.egress).mode
    if mode == "none":
        return {}
    faults = {
        Egress.NONE.value: "'security.egress' is 'none', and the tool is behind a url; "
        f"say '{Egress.ALLOWLISTED}', or set 'upstreams.{name}.egress.mode' to 'none'"
    }
    if mode != "private":
        faults[Egress.PRIVATE.value] = (
            f"'security.egress' is '{Egress.PRIVATE}', and the rule of the upstream is '{mode}'; "
            f"set 'upstreams.{name}.egress.mode' to 'private'"
        )
    return faults


def word(config: Config, name: str) -> Egress:
    """What the rule of an upstream says of tools that say nothing themselves."""
    settings = config.upstreams[name]
    if settings.mcp is None or settings.mcp.url is None:
        return Egress.NONE
    return _SAID.get((settings.egress or config.egress).mode, Egress.NONE)


def stated(overlay: Overlay, config: Config, name: str) -> Overlay:
    """The overlay with what the upstream's rule says of tools of which it says nothing."""
    said = word(config, name)
    if said is Egress.NONE or "egress" in overlay.defaults:
        return overlay
    return replace(overlay, defaults={"egress": said.value, **overlay.defaults})
