"""Commands that have a name and are not built yet: they say so and do nothing."""

from collections.abc import Callable

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.screen import fail

NOT_BUILT = {
    "chain": "call the tools one by one",
    "test": "use 'holdfast.testing' from Python",
}
"""The command, and what to do until then."""


def add(app: typer.Typer) -> None:
    for name in NOT_BUILT:
        app.command(
            name,
            hidden=True,
            add_help_option=False,
            context_settings={
                "allow_extra_args": True,
                "ignore_unknown_options": True,
                "help_option_names": [],
            },
        )(_command(name))


def _command(name: str) -> Callable[[], None]:
    def not_built() -> None:
        fail(f"'holdfast {name}' is not built yet; {NOT_BUILT[name]}")
        raise typer.Exit(Exit.USAGE)

    not_built.__doc__ = "Not built yet."
    return not_built
