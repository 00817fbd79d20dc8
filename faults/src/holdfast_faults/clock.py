"""How is a gateway's clock moved while it runs?

By `libfaketime`, preloaded into its process: what it is told is read from a file, once a second.
Only wall time moves; what counts from the start of the machine goes on, as when a clock is set.
"""

import asyncio
from importlib.util import find_spec
from pathlib import Path

NOTICED_S = 2.2
"""The library asks once a second, in whole seconds."""
LIBRARY = ("vendor", "libfaketime", "src", "libfaketime.so.1")


def library() -> Path | None:
    """The library inside the PyPI package, which need not be imported for it."""
    spec = find_spec("libfaketime")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (found := Path(place).joinpath(*LIBRARY)).is_file():
            return found
    return None


class FalseClock:
    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def environment(self, preloaded: Path) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(preloaded),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "0",  # read anew every second, not at every look: that would be felt
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    async def jump(self, hours: int) -> None:
        """So many hours from now; returns when the whole gateway sees it."""
        self.set(hours)
        await asyncio.sleep(NOTICED_S)

    def set(self, hours: int) -> None:
        aside = self._file.with_suffix(".new")
        aside.write_text(f"{hours:+d}h\n" if hours else "+0\n")
        aside.replace(self._file)
