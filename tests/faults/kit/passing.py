"""The least that stands between client and server: passes bytes on, and remembers nothing.

python passing.py PORT URL
"""

import asyncio
import sys
from urllib.parse import urlsplit


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    except ConnectionError:
        pass  # whoever is left is told by the end of the stream
    finally:
        target.close()


async def main(port: int, url: str) -> None:
    where = urlsplit(url)

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(where.hostname, where.port)
        await asyncio.gather(_pour(reader, back), _pour(there, writer))

    server = await asyncio.start_server(passed, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
