"""Verifies an exported log alone: `python -m holdfast.records.verify FILE --key KEY`.

Needs this package and the public key, no database, no configuration and no gateway.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from holdfast.model.errors import HoldfastError
from holdfast.records.checkpoint import CheckpointFile
from holdfast.records.exported import inspect_export
from holdfast.records.note import Verifier
from holdfast.records.report import Report


def verify_export(path: Path, key: Verifier, checkpoints: Path | None = None) -> Report:
    outside = [] if checkpoints is None else CheckpointFile(checkpoints).read()
    with path.open("rb") as file:
        return inspect_export(file, outside, key)


def public_key(said: str) -> Verifier:
    """A key as it is written, or a file that holds it."""
    if "+" not in said or Path(said).is_file():
        said = Path(said).read_text()
    return Verifier.parse(said)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast.records.verify", description=__doc__)
    parser.add_argument("file", type=Path, help="what 'holdfast audit export' wrote")
    parser.add_argument("--key", required=True, help="the public key, or a file that holds it")
    parser.add_argument("--checkpoints", type=Path, help="checkpoints that you kept yourself")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    given = parser.parse_args(arguments)
    try:
        report = verify_export(given.file, public_key(given.key), given.checkpoints)
    except (HoldfastError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    said = orjson.dumps(report.to_dict()).decode() if given.json else "\n".join(report.lines())
    sys.stdout.write(f"{said}\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
