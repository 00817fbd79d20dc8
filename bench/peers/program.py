"""The upstream as a program, for gateways that start their servers themselves."""

import sys

from bench.running import ROOT

UPSTREAM = "bench/upstream.py"
"""By this part of its command line it is told from the gateway that started it."""
PROGRAM = (sys.executable, "-P", str(ROOT / UPSTREAM), "stdio")
