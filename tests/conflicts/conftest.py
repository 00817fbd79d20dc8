"""Every test of conflicts runs on every store."""

from tests.lifecycle.conftest import open_gateway, store

__all__ = ["open_gateway", "store"]
