"""The ports of the durable memory, in plain dicts: for tests, and the model the others are tested against."""

from holdfast.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
