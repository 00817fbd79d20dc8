"""Opens a configuration, wires the ports, and carries proposals through the life of a call."""

from holdfast.gateway.gateway import Gateway

__all__ = ["Gateway"]
