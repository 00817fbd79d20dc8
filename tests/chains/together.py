"""Several processes begin one run with one key at the same moment, and each drives it.

    python -m tests.chains.together STORE FOLDER KEYS

All of them wait for each other before each key. What became of each is printed as JSON.
"""

import asyncio
import json
import os
import sys
from functools import partial
from pathlib import Path

from holdfast.model.run import RunState
from tests.chains.crashing import PATIENCE_S
from tests.chains.orders import acted, ann, saga, shop
from tests.polling import until

PROCESSES = 3


def there(folder: Path, key: int) -> bool:
    return len([*folder.glob(f"there-{key}-*")]) == PROCESSES


async def work(url: str, folder: Path, number: int, keys: int) -> None:
    async with shop(url, folder) as gateway:
        for key in range(keys):
            (folder / f"there-{key}-{number}").touch()
            await until(partial(there, folder, key))
            run = await gateway.chains.start(ann(gateway), saga(), {"item": "tea"}, f"k-{key}")
            async with asyncio.timeout(PATIENCE_S):
                while run.state is not RunState.COMPLETED:
                    run = await gateway.chains.wait(ann(gateway), run.id, 1.0)
            told = {"key": key, "run": run.id, "did": acted(folder, run.id), "rounds": run.round}
            os.write(1, f"{json.dumps(told)}\n".encode())  # in one piece


def main(url: str, folder: Path, keys: int) -> None:
    children = []
    for number in range(PROCESSES):
        child = os.fork()
        if not child:
            try:
                asyncio.run(work(url, folder, number, keys))
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        children.append(child)
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ended == [0] * PROCESSES, ended


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
