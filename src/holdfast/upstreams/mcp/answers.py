"""What did the server answer, for those who do not speak its protocol?"""

from typing import Any

from holdfast.model.answer import Answer
from holdfast.model.costs import REPORTED
from holdfast.upstreams.mcp.errors import Garbage
from holdfast.upstreams.mcp.hidden import Hidden

INPUT_REQUIRED = "input_required"


def unfinished(result: dict[str, Any]) -> bool:
    """The server wants something from the client before it goes on."""
    return result.get("resultType") == INPUT_REQUIRED


def answered(method: str, result: dict[str, Any], hidden: Hidden) -> Answer:
    kind = result.get("resultType", "complete")
    if kind != "complete" and kind != INPUT_REQUIRED:
        raise Garbage(f"the server answered with {str(kind)[:100]!r}, which was not offered to it")
    if method != "tools/call" or kind == INPUT_REQUIRED:
        return Answer(data=result, native=result, unfinished=kind == INPUT_REQUIRED)
    structured = result.get("structuredContent")
    data = {"content": result.get("content", [])} if structured is None else structured
    error = _complaint(result.get("content"), hidden) if result.get("isError") is True else None
    meta = result.get("_meta")
    cost = meta.get(REPORTED) if meta and isinstance(meta, dict) else None
    return Answer(data=data, native=result, error=error, cost=cost)


def _complaint(content: Any, hidden: Hidden) -> str:
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    said = "\n".join(text for text in texts if isinstance(text, str))
    return hidden.out_of(said) or "the tool says that it failed, and not why"
