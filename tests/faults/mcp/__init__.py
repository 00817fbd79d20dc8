"""What do clients get when the MCP server behind the gateway acts and does not answer, or answers late?"""
