"""Which commands are there?"""

import os
import sys
from collections.abc import Sequence

import typer

from holdfast.cli import (
    approvals,
    audit,
    budgets,
    calls,
    chain,
    channels,
    delegate,
    doctor,
    figures,
    grants,
    keys,
    labels,
    later,
    login,
    operate,
    plans,
    policy,
    rules,
    serve,
    stdio,
    store,
    story,
    tools,
    upstream_sessions,
    watch,
    why,
    wrap,
)
from holdfast.cli.exits import Exit, of_error
from holdfast.cli.listed import Listed
from holdfast.cli.screen import fail
from holdfast.model.errors import Forbidden, HoldfastError

app = typer.Typer(
    cls=Listed,
    name="holdfast",
    help="A governed gateway between agents and their tools: every effect happens at most once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help costs half the time to the first line
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for module in (serve, stdio, wrap, calls, tools, why, story, watch, approvals, budgets, operate, policy):
    module.add(app)
for module in (audit, doctor, figures, channels, rules, plans, chain, labels, store, keys, grants):
    module.add(app)
for module in (upstream_sessions, delegate, login, later):
    module.add(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and say how it ended; a traceback only with HOLDFAST_DEBUG=1."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `holdfast tools | head`: nobody reads on, which is no fault
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except Exception as error:
        return _told(error)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        app(args=None if arguments is None else list(arguments), prog_name="holdfast")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else Exit.DONE
    return Exit.DONE


def _told(error: Exception) -> int:
    if os.environ.get("HOLDFAST_DEBUG") == "1":
        raise error
    if isinstance(error, Forbidden):
        fail(f"{error}; give --as NAME of somebody who may")
    elif isinstance(error, HoldfastError):
        fail(str(error))
    else:
        name = type(error).__name__
        fail(f"something broke inside holdfast: {name}; run it again with HOLDFAST_DEBUG=1 to see where")
    return of_error(error)
