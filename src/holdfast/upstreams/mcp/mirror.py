"""Which arguments does a tool want repeated as HTTP headers?

2026-07-28: `x-mcp-header` in the schema, so that whoever routes need not read the body. The last listing is
believed; for a tool it does not name, the contract's own schema.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.model.contract import Contract
from holdfast.upstreams.mcp.marks import paths as marked_paths

_Paths = dict[tuple[str, ...], str]
_NONE: Mapping[str, str] = {}
MOST_READ = 4096
"""Contracts whose schemas were read; far more than one server has tools."""


class Mirror:
    def __init__(self) -> None:
        self._listed: dict[str, _Paths] = {}
        self._contracts: dict[str, _Paths] = {}

    def learn(self, tools: Iterable[Mapping[str, Any]]) -> None:
        self._listed = {str(tool.get("name")): marked_paths(tool.get("inputSchema")) for tool in tools}
        self._contracts.clear()

    def headers(self, name: str, contract: Contract, arguments: Mapping[str, Any]) -> Mapping[str, str]:
        paths = self._listed.get(name)
        if paths is None:
            paths = self._contracts.get(contract.digest)
            if paths is None:
                paths = self._read(contract)
        return _repeated(paths, arguments) if paths else _NONE

    def _read(self, contract: Contract) -> _Paths:
        if len(self._contracts) >= MOST_READ:
            self._contracts.clear()
        paths = self._contracts[contract.digest] = marked_paths(contract.affordance.input_schema)
        return paths


def _repeated(paths: _Paths, arguments: Mapping[str, Any]) -> Mapping[str, str]:
    from mcp.shared.inbound import mcp_param_headers  # the SDK takes a second to import

    return mcp_param_headers(paths, arguments)
