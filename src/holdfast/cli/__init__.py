"""The command `holdfast`.

Nothing heavy is imported before a command is chosen, so that `holdfast --help` is quick.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    from holdfast.cli.app import run

    sys.exit(run(arguments))
