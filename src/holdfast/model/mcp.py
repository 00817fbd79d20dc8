"""Which words of MCP do several parts of the gateway share?

Only names: what they mean is the business of `upstreams/mcp` and `servers/mcp`.
"""

READ = "mcp-resources-read"
GET = "mcp-prompts-get"
COMPLETE = "mcp-completion-complete"
COMPANIONS = {READ: "resources/read", GET: "prompts/get", COMPLETE: "completion/complete"}
"""Tools of our own that carry what is no tool through the gates, and the method each stands for. No client
sees them in a list, and no upstream can call a tool so."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Of logging, the least first."""
