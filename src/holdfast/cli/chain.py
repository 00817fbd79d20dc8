"""`holdfast chain`: several calls declared as one, checked, run and undone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import data, show, show_json, table, text
from holdfast.cli.session import caller, decider, with_gateway

if TYPE_CHECKING:
    from holdfast.chains.check import Report
    from holdfast.chains.declared import Chain
    from holdfast.gateway import Gateway
    from holdfast.gateway.chains import Shown
    from holdfast.gateway.plans import Planned
    from holdfast.gateway.proving_chains import Report as Proof
    from holdfast.model.run import Run

chain = typer.Typer(name="chain", cls=Listed, help="Several calls declared as one.", no_args_is_help=True)

Named = Annotated[
    str,
    typer.Argument(metavar="CHAIN", help="A chain of the configured folder, or a file.", show_default=False),
]
RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="The run, as 'chain run' names it.", show_default=False)
]

WAIT_S = 600.0
STYLES = {
    "COMPLETED": "bold green",
    "COMPENSATED": "bold yellow",
    "COMPENSATION_FAILED": "bold red",
    "ABORTED": "bold red",
    "RUNNING": "bold cyan",
    "COMPENSATING": "bold yellow",
    "done": "green",
    "failed": "red",
    "skipped": "dim",
    "chosen": "dim",
}

ENDS = {"choice": "chosen", "commit": "commit", "rollback": "rollback"}
"""What a line says that is no step, by what its name ends with."""
SETTLED = "committed|no-effect --note WHY"
FOUND = {"shown": "green", "refuted": "bold red", "nothing": "yellow"}


def add(app: typer.Typer) -> None:
    app.add_typer(chain)


@chain.command("check")
def check(named: Named, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Say everything that keeps a chain from being run, each with its place; nothing is called."""

    async def checked(gateway: "Gateway") -> "Report":
        return gateway.chains.check(caller(gateway, as_), _found(gateway, named))

    report = with_gateway(config, checked)
    if as_json:
        from holdfast.gateway.chains import told_report

        show_json(told_report(report))
    else:
        _show_report(report)
    raise typer.Exit(Exit.DONE if report.ok else Exit.FAILED)


@chain.command("run")
def run(
    named: Named,
    args: Annotated[
        str, typer.Option(help="The chain's input: JSON, @FILE, or - for standard input.")
    ] = "{}",
    key: Annotated[str | None, typer.Option(help="Names this run: started twice, it runs once.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is over, or waits for somebody.")] = True,
    plan: Annotated[
        bool, typer.Option("--plan", help="Ask people once about all steps that are known now; run nothing.")
    ] = False,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Run a chain: every step passes every gate, and what was done is never done twice."""
    from secrets import token_hex

    import orjson

    from holdfast.cli.calls import given_arguments
    from holdfast.gateway.chains import asked_again

    given = orjson.loads(given_arguments(args))
    if plan:
        _planned(named, given, as_, config, as_json)

    async def ran(gateway: "Gateway") -> "Shown":
        by = caller(gateway, as_)
        begun = await gateway.chains.start(by, _found(gateway, named), given, key or f"cli-{token_hex(8)}")
        if wait:
            await gateway.chains.wait(by, begun.id, WAIT_S, beyond=asked_again(begun))
        return await gateway.chains.look(by, begun.id)

    _told(with_gateway(config, ran), as_json, config)


@chain.command("show")
def show_run(
    run_id: RunId, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Show how far a run has come, step by step."""

    async def looked(gateway: "Gateway") -> "Shown":
        return await gateway.chains.look(caller(gateway, as_), run_id)

    _told(with_gateway(config, looked), as_json, config, judge=False)


@chain.command("runs")
def runs(as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List runs, newest first."""
    from holdfast.gateway.chains import shown

    async def listed(gateway: "Gateway") -> "list[Run]":
        return list(await gateway.chains.list(caller(gateway, as_)))

    found = with_gateway(config, listed)
    if as_json:
        show_json({"runs": [shown(one) for one in found]})
    elif not found:
        show(text("no chain was run yet; 'holdfast chain run CHAIN' runs one"))
    else:
        rows = [
            (one.id, one.chain, (one.state.value, STYLES[one.state]), one.waits_for or one.why)
            for one in found
        ]
        show(table(("run", "chain", "state", ""), rows))


@chain.command("resume")
def resume(run_id: RunId, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Go on with a run that waits for a person."""

    async def resumed(gateway: "Gateway") -> "Shown":
        by = decider(gateway, as_)
        was = await gateway.chains.resume(by, run_id)
        await gateway.chains.wait(by, run_id, WAIT_S, beyond=was.round)
        return await gateway.chains.look(by, run_id)

    _told(with_gateway(config, resumed), as_json, config)


@chain.command("choose")
def choose(
    run_id: RunId,
    step: Annotated[
        str,
        typer.Argument(metavar="STEP", help="Where it waits, as 'chain show' names it.", show_default=False),
    ],
    case: Annotated[str, typer.Argument(metavar="CASE", help="The case that it is.", show_default=False)],
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Say which way a run goes where the tool that it asked was not sure enough."""

    async def chosen(gateway: "Gateway") -> "Shown":
        by = decider(gateway, as_)
        taken = await gateway.chains.choices.choose(by, run_id, step, case)
        await gateway.chains.wait(by, run_id, WAIT_S, beyond=taken.round)
        return await gateway.chains.look(by, run_id)

    _told(with_gateway(config, chosen), as_json, config)


@chain.command("abandon")
def abandon(run_id: RunId, note: Note, as_: As = None, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """End a run as it stands: what was done stays done."""

    async def abandoned(gateway: "Gateway") -> None:
        await gateway.chains.abandon(decider(gateway, as_), run_id, note)

    with_gateway(config, abandoned)
    show(text(("abandoned", "bold yellow"), f"  {run_id}"))


@chain.command("cancel")
def cancel(run_id: RunId, as_: As = None, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """Stop a run; a saga takes back what it has done."""

    async def cancelled(gateway: "Gateway") -> "tuple[bool, Run]":
        by = caller(gateway, as_)
        done = await gateway.chains.cancel(by, run_id)
        return done, await gateway.chains.wait(by, run_id, WAIT_S)

    done, now = with_gateway(config, cancelled)
    show(text(("stopped" if done else "too late", "bold yellow"), f"  {run_id}  {now.state.value}"))
    raise typer.Exit(Exit.DONE if done else Exit.FAILED)


@chain.command("prove")
def prove(
    named: Named,
    args: Annotated[
        str, typer.Option(help="The chain's input: JSON, @FILE, or - for standard input.")
    ] = "{}",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Do and undo each step of a saga in a twin, and see whether all is as before; for operators."""
    import orjson

    from holdfast.cli.calls import given_arguments

    given = orjson.loads(given_arguments(args))

    async def proven(gateway: "Gateway") -> "Proof":
        return await gateway.chains.inversions.prove(decider(gateway, as_), _found(gateway, named), given)

    from holdfast.gateway.proving_chains import told_proof

    report = with_gateway(config, proven)
    told = told_proof(report)
    if as_json:
        show_json(told)
    elif not told["steps"]:
        show(text("this chain takes nothing back, so there is nothing to show"))
    else:
        for row in told["steps"]:
            found = (f"  {row['found']:<8}", FOUND[row["found"]])
            show(text(found, f" {row['step']}", (f"  {row['tool']} by {row['undone_by']}", "dim")))
            show(text(("           ", "dim"), row["text"]))
    raise typer.Exit(Exit.DONE if report.ok else Exit.FAILED)


@chain.command("accept")
def accept(named: Named, note: Note, as_: As = None, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """Take a saga as it is where nobody has shown that its undoings undo; on record, for operators."""

    async def accepted(gateway: "Gateway") -> list[str]:
        taken = await gateway.chains.inversions.accept(decider(gateway, as_), _found(gateway, named), note)
        return [f"{one.step.id} ({one.tool} by {one.undone_by})" for one in taken]

    taken = with_gateway(config, accepted)
    if not taken:
        show(text("nothing was left to accept: all of it was shown, or accepted before"))
    for one in taken:
        show(text(("accepted", "bold yellow"), f"  {one}"))


@chain.command("draw")
def draw(named: Named, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """Print a chain as a Mermaid graph."""
    from holdfast.chains.drawing import mermaid

    async def drawn(gateway: "Gateway") -> str:
        return mermaid(_found(gateway, named))

    typer.echo(with_gateway(config, drawn), nl=False)


def _planned(named: str, given: Any, as_: str | None, config: Path, as_json: bool) -> None:
    """People are asked; the run uses their answer when it comes."""
    from holdfast.cli.plans import EXITS, show_planned

    async def asked(gateway: "Gateway") -> "Planned":
        return await gateway.chains.plan(caller(gateway, as_), _found(gateway, named), given)

    found = with_gateway(config, asked)
    if as_json:
        from holdfast.servers.standing import shown_planned

        show_json(shown_planned(found))
    else:
        show_planned(found, config)
    raise typer.Exit(EXITS[found.status])


def _found(gateway: "Gateway", named: str) -> "Chain":
    from holdfast.chains.reading import load

    file = Path(named)
    return load(file) if file.suffix in (".yaml", ".yml") else gateway.chains.named(named)


def _told(seen: "Shown", as_json: bool, config: Path, *, judge: bool = True) -> None:
    from holdfast.gateway.chains import told_run

    now = seen.run
    if as_json:
        show_json(told_run(seen))
    else:
        _show_run(seen, with_config(config))
    if not judge:
        raise typer.Exit(Exit.DONE)
    raise typer.Exit(ended(now))


def ended(now: "Run") -> Exit:
    """What goes on by itself, or with a job, has not failed: how it ends is not known yet."""
    if now.state.over:
        return Exit.DONE if now.state == "COMPLETED" else Exit.FAILED
    return Exit.HELD if now.stuck or "approval '" in now.waits_for else Exit.UNKNOWN


def _show_run(seen: "Shown", config: str) -> None:
    now = seen.run
    show(
        text(
            (now.state.value.lower().replace("_", " "), STYLES[now.state]),
            f"  {now.chain}@{now.version}  {now.id}",
        )
    )
    for line in seen.lines:
        if line.name.endswith("~join"):
            continue
        undone = line.name.endswith("~undo")
        name, word = (line.name.removesuffix("~undo"), "undone") if undone else (line.name, line.state.value)
        step, _, what = name.partition("~")
        if what in ENDS:
            show(text((f"  {ENDS[what]:<8}", STYLES["chosen"]), f" {step}  {line.message}".rstrip()))
            continue
        show(
            text(
                (f"  {word:<8}", "magenta" if undone else STYLES[line.state]),
                f" {name}",
                (f"  {line.tool}" if line.tool else "", "dim"),
                f"  {line.code} {line.message}" if line.code else "",
            )
        )
        if line.state == "failed" and line.call_id:
            show(text((f"{'':11}look: {command()} show {line.call_id}{config}", "dim")))
    if now.why:
        show(text(("  because  ", "dim"), now.why))
    if now.waits_for:
        show(text(("  waits for ", "yellow"), now.waits_for))
    for hint in _next(now, config):
        show(text(("  next: ", "dim"), hint))
    if now.output is not None:
        show(data(now.output))


def _next(now: "Run", config: str) -> list[str]:
    """What can be done about a run that is not over, and does not say so itself."""
    from holdfast.model.run import waited_on

    if now.state.over:
        return []
    if now.stuck and "choose: " not in now.waits_for:
        return [
            f"put it right, then: {command()} chain resume {now.id}{config}",
            f"or leave it as it stands: {command()} chain abandon {now.id} --note WHY{config}",
        ]
    on = waited_on(now.waits_on)
    asked = [one for one in on if f"approval {one!r}" in now.waits_for]
    unknown = [one for one in on if f"the outcome of call {one!r}" in now.waits_for]
    return [
        *(f"{command()} approvals {one}{config}" for one in asked),
        *(
            f"find out whether it happened, then: {command()} settle {one} {SETTLED}{config}"
            for one in unknown
        ),
    ]


def _show_report(report: "Report") -> None:
    guess = report.estimate
    word, style = ("can be run", "bold green") if report.ok else ("cannot be run", "bold red")
    show(text((word, style), f"  {report.chain.name}@{report.chain.version}"))
    for fault in report.faults:
        show(text((f"  {fault.place}", "cyan"), f"  {fault.text}"))
    for note in report.notes:
        show(text((f"  {note.place}", "dim"), (f"  {note.text}", "dim")))
    show(text(("  effect      ", "dim"), report.effect.value))
    show(text(("  scopes      ", "dim"), ", ".join(report.scopes) or "none"))
    if report.ok:
        steps = f"{guess.latency_ms:,.0f} ms on its longest way, {guess.steps} steps"
        show(text(("  takes about ", "dim"), steps))
        show(text(("  comes through", "dim"), f" {guess.success:.1%} of the time"))
        rows = [
            (name, f"{one.latency_ms:,.0f} ms", f"{one.success:.1%}", one.source)
            for name, one in report.known.items()
        ]
        show(table(("tool", "takes", "succeeds", "as"), rows))
