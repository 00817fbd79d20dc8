"""Every test of delegations runs on every store, unless it says otherwise."""

from tests.approvals.conftest import house, store

__all__ = ["house", "store"]
