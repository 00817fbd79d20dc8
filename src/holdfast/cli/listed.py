"""How does help list commands? With all that is said of each, over as many lines as that takes."""

from typing import Any

from typer.core import TyperGroup

WHOLE = 1000
"""More characters than any command says of itself."""


class Listed(TyperGroup):
    """A sentence cut in the middle tells nobody what a command is for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, one.get_short_help_str(WHOLE).rstrip("."))
            for name, one in found
            if one is not None and not one.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
