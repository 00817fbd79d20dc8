"""Which options do several commands share?"""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path,
    typer.Option(
        "--config", "-c", envvar="HOLDFAST_CONFIG", help="The configuration, YAML or TOML.", show_envvar=False
    ),
]
DEFAULT_CONFIG = Path("holdfast.yaml")

As = Annotated[
    str | None, typer.Option("--as", metavar="USER", help="Act as this person of the configuration.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Note = Annotated[str, typer.Option("--note", help="Why; kept in the record.")]
