"""The gateways the kit knows how to start."""

from holdfast_faults.adapter import Adapter
from holdfast_faults.gateways.contextforge import CONTEXTFORGE
from holdfast_faults.gateways.direct import DIRECT
from holdfast_faults.gateways.fastmcp import FASTMCP
from holdfast_faults.gateways.holdfast import HOLDFAST
from holdfast_faults.gateways.supergateway import SUPERGATEWAY

ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter for adapter in (HOLDFAST, FASTMCP, CONTEXTFORGE, SUPERGATEWAY, DIRECT)
}

__all__ = ["ADAPTERS"]
