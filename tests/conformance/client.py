"""The program that the suite starts for every scenario: it hands the scenario on and waits for its end.

Holdfast's upstream side runs in the test's own process (`driver.py`), started once instead of fifty times.
"""

import json
import os
import socket
import sys


def main(port: str, url: str) -> int:
    asked = {
        "url": url,
        "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
        "version": os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")),
    }
    with socket.create_connection(("127.0.0.1", int(port))) as driver, driver.makefile("rw") as lines:
        lines.write(json.dumps(asked) + "\n")
        lines.flush()
        trouble = json.loads(lines.readline())
    sys.stderr.write(trouble)
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
