"""What does a worker have from the process that started it?

Three descriptors, named on its command line: the socket they all accept from; a pipe that ends when the
worker is to end, which is also what happens when its parent dies; and a pipe by which it says that it serves.
An older parent may start a newer worker (that is what a rolling upgrade is), so this text may not change;
what came later, the tally, is found by a variable.
"""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.cli.tally import Tally

READY = b"ready\n"


@dataclass(frozen=True, slots=True)
class Links:
    bound: int
    life: int
    report: int
    first: bool
    """Whether it welcomes people, for all of them."""
    alone: bool
    """Whether it is to have no siblings."""
    tally: Tally | None = None
    """What its siblings count; an older parent has none."""

    def __str__(self) -> str:
        return f"{self.bound},{self.life},{self.report},{int(self.first)},{int(self.alone)}"

    @classmethod
    def parse(cls, said: str) -> "Links":
        bound, life, report, first, alone = (int(part) for part in said.split(","))
        for descriptor in (bound, life, report):
            os.set_inheritable(descriptor, False)  # they are not for the programs that tools start
        return cls(bound, life, report, bool(first), bool(alone), Tally.found(os.environ))

    def socket(self) -> "socket.socket":
        return socket.socket(fileno=self.bound)

    def is_ready(self) -> None:
        os.write(self.report, READY)
        os.close(self.report)


def on_end(descriptor: int, call: Callable[[], None]) -> None:
    """Calls back once the other end of a pipe is closed."""
    import asyncio

    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(descriptor, 64):
            loop.remove_reader(descriptor)
            call()

    loop.add_reader(descriptor, readable)
