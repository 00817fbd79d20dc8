"""How is a peer started? As the fault kit starts it, so that both say the same of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from holdfast_faults.adapter import Launch, Site, Unavailable

from bench.contestant import Endpoint
from bench.running import Unstarted, running


@contextmanager
def launched(
    prepare: Callable[[Site], Launch],
    place: Path,
    upstream: str,
    home: Path,
    *,
    command: Sequence[str] = (),
    prefix: str = "",
    own_upstream: str = "",
) -> Iterator[Endpoint]:
    """The peer runs in front of the upstream's URL, or in front of the command it starts itself."""
    site = Site(folder=place, upstream_url=upstream, upstream_command=command, tools={}, home=home)
    try:
        launch = prepare(site)
        port = urlsplit(launch.url).port or 80
        with running(launch.command, port, place / "log", launch.environment) as pid:
            if launch.once is not None:
                launch.once()
            yield Endpoint(url=launch.url, pid=pid, prefix=prefix, own_upstream=own_upstream)
    except Unavailable as error:
        raise Unstarted(str(error)) from None
