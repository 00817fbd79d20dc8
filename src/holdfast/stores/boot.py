"""How long ago was that, whatever somebody did to the wall clock?

Leases and windows are measured in time since the machine started, which every process of the machine
shares, counts suspended hours and never jumps. It means something only together with the boot's id (IDM-8).
"""

import ctypes
import ctypes.util
import sys
import time
from functools import partial
from pathlib import Path
from typing import Protocol

from holdfast.model.errors import StoreError

_SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Darwin has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts sleep, which Linux's does not."""


def elapsed() -> float:
    """Seconds since the machine was started, those included in which it slept."""
    return time.clock_gettime(_SINCE_BOOT)


class Boot(Protocol):
    @property
    def id(self) -> str: ...
    def now(self) -> float: ...


class SystemBoot:
    """This machine since it was started."""

    now = staticmethod(partial(time.clock_gettime, _SINCE_BOOT))

    def __init__(self) -> None:
        self.id = _boot_id()


def _boot_id() -> str:
    if sys.platform == "darwin":
        return _sysctl("kern.bootsessionuuid")
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise StoreError(f"this machine does not say when it was booted ({error}); mount /proc") from error


def _sysctl(name: str) -> str:
    libc = ctypes.CDLL(ctypes.util.find_library("c"))
    value = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(value))
    if libc.sysctlbyname(name.encode(), value, ctypes.byref(size), None, 0) != 0:
        raise StoreError(f"this machine does not say when it was booted: no '{name}'")
    return value.value.decode()
