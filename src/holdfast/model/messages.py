"""Texts that must be the same wherever they are said."""


def no_such_tool(name: str) -> str:
    """Word for word the same whether a tool does not exist or may not be seen."""
    return f"there is no tool {name[:128]!r} for you; list the tools you may use"


CHANGING = "another call is changing the same; look what it is like now, then call again"
STORE_AWAY = "the store cannot be used right now"
"""How a refusal begins that says nothing of the call: asked again later, it is judged as if it were new."""
ENDED = "what was delegated to you has ended; ask for a new delegation"
