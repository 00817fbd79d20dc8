"""Which keys and values of the configuration are promised and not built yet?"""

from collections.abc import Iterator
from typing import Any

from holdfast.config.place import Fault, Place, like

NOT_BUILT: dict[str, tuple[str | None, str]] = {
    # path (`*` is any name): the value that is not built yet (None: no value is), and what to do instead
    "upstreams.*.http": (None, "remove it"),
    "upstreams.*.grpc": (None, "remove it"),
    "upstreams.*.timeout": (None, "set 'timeout_ms' on the tools instead"),
}


def without_unbuilt(node: Any, here: Place, faults: list[Fault]) -> Any:
    """The tree with what can be used today; what cannot is a fault each."""
    if not isinstance(node, dict):
        return node
    left = {}
    for key, value in node.items():
        place = (*here, key)
        if (fault := _fault(place, value)) is not None:
            faults.append(fault)
        else:
            left[key] = without_unbuilt(value, place, faults)
    return left


def keys_below(place: Place) -> Iterator[str]:
    """Keys that will be known here one day, so that a slip of the pen is told as one."""
    for path, (value, _) in NOT_BUILT.items():
        parent, _, key = path.rpartition(".")
        if value is None and like(place, parent):
            yield key


def _fault(place: Place, value: Any) -> Fault | None:
    for path, (unbuilt, instead) in NOT_BUILT.items():
        if not like(place, path):
            continue
        if unbuilt is None:
            return Fault(place, f"{place[-1]!r} is not built yet; {instead}")
        if isinstance(value, str) and value.startswith(unbuilt):
            return Fault(place, f"{unbuilt!r} is not built yet; {instead}")
    return None
