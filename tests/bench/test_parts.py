"""Does the table of parts still find what it watches?"""

import json
import subprocess
import sys

ASKED = """
import json
from bench.parts_server import watch
from bench.stopwatch import Stopwatch
missing = watch(Stopwatch())
from holdfast import lifecycle
print(json.dumps([missing, [gate.__wrapped__.__name__ for gate in lifecycle.GATES]]))
"""


def test_every_part_is_where_it_is_looked_for_and_every_gate_is_watched() -> None:
    # in a process of its own: it puts itself around what it watches
    ran = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True)
    missing, gates = json.loads(ran.stdout)
    assert missing == []
    assert gates == [
        "resolve",
        "authorize",
        "arguments",
        "semantics",
        "policy",
        "replay",
        "state",
        "limits",
        "approval",
        "claim",
    ]
