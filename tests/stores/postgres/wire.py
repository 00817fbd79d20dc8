"""A wire to a PostgreSQL that breaks at what is said, not at how much was said before."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from holdfast.records.chain import Record, first_fault
from tests.faults.proxy import Cut, Proxy
from tests.stored import asked

COMMIT = b"COMMIT\0"


class Wire:
    """Everything the client sends at once is one message; the driver sends a statement with its values so."""

    def __init__(self, url: str) -> None:
        whole = urlsplit(url)
        [host] = parse_qs(whole.query)["host"]
        self.direct = url
        self.proxy = Proxy(Path(host, ".s.PGSQL.5432"), lambda: self)
        self._at: bytes | None = None
        self._after = False
        self._for_good = False
        self._end = f"{whole.path}?sslmode=disable"
        self._user = whole.username

    @property
    def url(self) -> str:
        return f"postgresql://{self._user}@127.0.0.1:{self.proxy.port}{self._end}"

    def break_at(self, said: bytes, *, after: bool, for_good: bool = False) -> None:
        """Once, at the next message with this in it. `after`: the server gets it, and its answer is lost.
        `for_good`: nobody gets through any more until `mend`.
        """
        self.proxy.cut, self.proxy.fired = None, False
        self._at, self._after, self._for_good = said, after, for_good

    def mend(self) -> None:
        self.proxy.refusing = False

    @property
    def broke(self) -> bool:
        return self.proxy.fired

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._at is not None and self._at in data:
            self._at = None
            self.proxy.refusing = self._for_good
            self.proxy.cut = Cut(1, "client", self._after)
        yield data

    def records(self) -> list[Record]:
        """What the log says, past the wire; it is without fault."""
        rows = asked(self.direct, "SELECT * FROM holdfast.record ORDER BY writer, seq")
        found = [Record(*row) for row in rows]
        for writer in {record.writer for record in found}:
            assert first_fault(record for record in found if record.writer == writer) is None
        return found


@contextmanager
def wired(url: str) -> Iterator[Wire]:
    wire = Wire(url)
    with wire.proxy.apart():
        yield wire
