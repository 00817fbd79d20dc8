"""Who calls us over MCP? Both eras, over HTTP and stdio; every call goes through the gateway like any other.

Nothing here is imported before somebody serves MCP: the SDK takes over a second to load.
"""
