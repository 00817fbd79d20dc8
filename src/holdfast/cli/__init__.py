"""The command `holdfast`.

Nothing heavy is imported before a command is chosen, so that `holdfast --help` is quick.
"""

import logging
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    from holdfast.cli.garbage import seldom

    seldom()
    from holdfast.cli.app import run

    # A command says itself what matters; `serve` sets up logging of its own.
    logging.getLogger("holdfast").addHandler(logging.NullHandler())
    sys.exit(run(arguments))
