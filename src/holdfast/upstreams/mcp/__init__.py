"""Tools of MCP servers: over stdio, streamable HTTP and SSE, in both eras of the protocol."""
