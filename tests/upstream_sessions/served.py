"""The till as a configuration names it; each process has its own."""

from tests.upstream_sessions.till import Till, tools

TOOLS = tools(Till())
