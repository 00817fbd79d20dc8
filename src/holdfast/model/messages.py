"""Texts that must be the same wherever they are said."""


def no_such_tool(name: str) -> str:
    """Word for word the same whether a tool does not exist or may not be seen."""
    return f"there is no tool {name[:128]!r} for you; list the tools you may use"


ENDED = "what was delegated to you has ended; ask for a new delegation"
