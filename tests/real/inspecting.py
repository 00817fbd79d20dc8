"""What does the official inspector see?"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from tests.npm.installed import script

PACKAGE = "@modelcontextprotocol/inspector"
LAUNCHER = "clients/launcher/build/index.js"
ANSWERING_S = 120


async def inspect(target: Sequence[str], *arguments: str) -> dict[str, Any]:
    """The result of one method, as the inspector's command line prints it."""
    command = (*script(PACKAGE, LAUNCHER), "--cli", "--format", "json", "--quiet", *arguments, *target)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(ANSWERING_S):
            said, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, (errors or said).decode(errors="replace")[-3000:]
    result: dict[str, Any] = json.loads(said)
    return result
