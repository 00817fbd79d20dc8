"""Commands that have a name and are not built yet: they say so and do nothing."""

from collections.abc import Callable

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.screen import fail

NOT_BUILT = {
    "test": "use 'holdfast.testing' from Python",
}
"""The command, and what to do until then."""


def add(app: typer.Typer) -> None:
    for name, instead in NOT_BUILT.items():
        unbuilt(app, name, name, instead)


def unbuilt(app: typer.Typer, name: str, said: str, instead: str) -> None:
    """One that is asked for in vain; `said` is what a person types."""
    app.command(
        name,
        hidden=True,
        add_help_option=False,
        context_settings={
            "allow_extra_args": True,
            "ignore_unknown_options": True,
            "help_option_names": [],
        },
    )(_command(said, instead))


def _command(said: str, instead: str) -> Callable[[], None]:
    def not_built() -> None:
        fail(f"'holdfast {said}' is not built yet; {instead}")
        raise typer.Exit(Exit.USAGE)

    not_built.__doc__ = "Not built yet."
    return not_built
