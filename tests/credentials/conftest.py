"""What do these tests start with?"""

from tests.lifecycle.conftest import open_gateway, store, world

__all__ = ["open_gateway", "store", "world"]
