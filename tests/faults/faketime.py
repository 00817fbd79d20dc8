"""A process whose wall clock says something else than everybody's, and may jump while it runs.

By libfaketime, from its wheel. The clocks that nobody can set (monotonic, since boot) stay as they are: they
are the machine's, and no operator or time server can move them.
"""

from importlib.util import find_spec
from pathlib import Path

LIBRARY = Path("vendor", "libfaketime", "src", "libfaketime.so.1")
HOUR_S = 3600.0


class WallClock:
    def __init__(self, file: Path, ahead_s: float, *, jumps: bool) -> None:
        self._file = file
        self._ahead_s = ahead_s
        self._jumps = jumps
        self.set(ahead_s)

    def set(self, ahead_s: float) -> None:
        """From now on the process sees a time this far ahead; it reads the file with every look."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_s:+.0f}\n")
        new.rename(self._file)

    @property
    def environment(self) -> dict[str, str]:
        common = {"LD_PRELOAD": str(library()), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        if not self._jumps:  # a file that is read with every look takes a third of the processor's time
            return {**common, "FAKETIME": f"{self._ahead_s:+.0f}"}
        return {**common, "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_NO_CACHE": "1"}


def library() -> Path:
    spec = find_spec("libfaketime")
    assert spec is not None, "libfaketime is missing; run 'make install'"
    assert spec.origin is not None
    return Path(spec.origin).parent / LIBRARY
