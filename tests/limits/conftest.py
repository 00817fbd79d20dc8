"""Every test of limits runs on every store."""

from tests.lifecycle.conftest import open_gateway, store, world

__all__ = ["open_gateway", "store", "world"]
