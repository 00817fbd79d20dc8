"""Who has a file, of several processes that want it?

The kernel takes a lock back from whoever dies, and nobody waits for long for one that is stopped. Locks are
given back by name: a process that was forked meanwhile has the descriptor too, and closing one of the two
is not enough.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HELD_S, PAUSE_S = 10.0, 0.02
"""How long somebody else may have the file, and between two looks whether they still do."""

_for_life: set[int] = set()


@contextmanager
def held(path: Path, patience_s: float = HELD_S) -> Iterator[None]:
    """Nobody else has it meanwhile; raises OSError where somebody does not let go."""
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        take(file, fcntl.LOCK_EX, patience_s)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        os.close(file)


def take(file: int, kind: int, patience_s: float = HELD_S) -> None:
    """Alone or with others (`fcntl.LOCK_EX`, `LOCK_SH`); raises OSError where somebody does not let go."""
    until = time.monotonic() + patience_s
    while not taken(file, kind):
        if time.monotonic() >= until:
            raise OSError(errno.EBUSY, "another process does not let go of it; end that one, or let it go on")
        time.sleep(PAUSE_S)


def taken(file: int, kind: int) -> bool:
    """The same without waiting: whether it is ours."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def keep(file: int) -> None:
    """What is locked is this process's until `let_go`, and not that of the processes it forks."""
    _for_life.add(file)


def let_go(file: int) -> None:
    """Unlock and close."""
    _for_life.discard(file)
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _forked() -> None:
    """The numbers stay taken: whoever was copied with them may still close them."""
    if _for_life:
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        for file in _for_life:
            os.dup2(nothing, file, inheritable=False)
        os.close(nothing)
        _for_life.clear()


os.register_at_fork(after_in_child=_forked)
