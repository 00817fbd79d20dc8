"""The reference page of the commands, read off them: `python -m tests.cli.reference` writes it."""

from collections.abc import Iterator, Mapping
from typing import Any

INTRODUCTION = """# The command `holdfast`

Every command opens the gateway in its own process, on the store that the configuration names; several
processes and a server share one store safely, so a command works whether or not a server runs. `--config` is
`./holdfast.yaml` or what `HOLDFAST_CONFIG` says. This page is read off the commands.

| exit | means |
|---|---|
| 0 | done, or previewed |
| 1 | failed: it ran and went wrong, or something here is broken |
| 2 | usage: the command, the configuration, or something that is not built yet |
| 3 | refused: a gate said no, or you may not |
| 4 | held: a person must approve first |
| 5 | unknown: nobody knows whether it happened, or it goes on: a job, a run of a chain |

| variable | means |
|---|---|
| `HOLDFAST_CONFIG` | the configuration, instead of `./holdfast.yaml` |
| `HOLDFAST_API_KEY` | your key, where `auth.mode` is not `local` |
| `HOLDFAST_TOKEN` | your token, where `auth.mode` is `jwt` |
| `HOLDFAST_APPROVER_SECRET` | your approver secret, instead of being asked for it |
| `HOLDFAST_DEBUG` | `1` shows the traceback of an error |

In `auth.mode: local` you are the OS user, or the person named by `--as`. Results go to standard output,
errors to standard error as `error: …` with what to do next. What a tool or an agent wrote is shown with its
control characters visible.
"""

ENDING = """
## Not built yet

{names}: they say so and end with 2.
"""


def page(commands: Mapping[str, Any]) -> str:
    visible = {name: command for name, command in commands.items() if not command.hidden}
    hidden = ", ".join(f"`{name}`" for name, command in commands.items() if command.hidden)
    parts = [INTRODUCTION]
    for name, command in visible.items():
        parts += _section(name, command)
    return "\n".join(parts) + ENDING.format(names=hidden)


def _section(name: str, command: Any) -> Iterator[str]:
    if getattr(command, "commands", None):
        for below, inner in command.commands.items():
            default = below == getattr(command, "default", None)
            yield from _section(name if default else f"{name} {below}", inner)
        return
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join(
        ["holdfast", name, *(p.metavar if p.required else f"[{p.metavar}]" for p in arguments), "[OPTIONS]"]
    )
    yield f"## `{usage}`\n\n{command.help}\n"
    yield "| argument or option | meaning |\n|---|---|"
    for parameter in arguments:
        yield f"| `{parameter.metavar}` | {parameter.help} |".replace(
            "committed|no-effect", "committed\\|no-effect"
        )
    for parameter in options:
        names = ", ".join(f"`{option}`" for option in parameter.opts)
        needed = " Required." if parameter.required else ""
        yield f"| {names} | {parameter.help}{needed} |"
    yield ""


if __name__ == "__main__":
    from tests.cli.conftest import ROOT
    from tests.cli.test_commands import commands

    (ROOT / "docs" / "reference" / "cli.md").write_text(page(commands()))
