"""The MCP server every gateway is put in front of: it acts whenever it is asked, and knows no keys itself."""
