"""`argus optimize`: a search for the fastest proved design of a problem, which may be left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from attrs import asdict, evolve
from click.core import ParameterSource

from argus.bench_cli import json_option
from argus.core.target import TARGETS
from argus.optimize_text import Teller, outcome_lines
from argus.optimizer.certificate import NAME
from argus.optimizer.delivery import delivered, product
from argus.optimizer.device import at_hand
from argus.optimizer.document import SCHEMA, document
from argus.optimizer.events import Event, Started
from argus.optimizer.journal import Journal
from argus.optimizer.problem import Gemm, problem_of
from argus.optimizer.run import Found, PlannerName, Settings, journal_path, optimize
from argus.optimizer.search import Limits
from argus.outcome import Outcome
from argus.policy.llm.settings import Settings as Model
from argus.policy.stopping import Rule
from argus.runtime.device import found as gpu_at_hand
from argus.screen import Screen
from argus.search_report.page import write_report

NOTHING = 1


@click.command("optimize")
@click.argument("problem", required=False, metavar="PROBLEM")
@click.option("--target", default="sm_90a", show_default=True, help=" or ".join(each.name for each in TARGETS))
@click.option("--sizes", default="", metavar="M=4096,...", help="Of a PROBLEM that is a file, all of its kernel's.")
@click.option(
    "--budget-seconds", "seconds", type=click.FloatRange(0, min_open=True), help="Longest time of the search."
)
@click.option("--trials", type=click.IntRange(1), help="Most candidates.")
@click.option(
    "--planner",
    type=click.Choice(["bandit", "llm", "random", "exhaustive", "tpe"]),
    default="bandit",
    show_default=True,
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option("--resume", metavar="RUN", default="", help="Go on with a run of the journal.")
@click.option("--journal", type=click.Path(dir_okay=False, path_type=Path), help="Where runs are kept.")
@click.option("--workers", type=click.IntRange(0, 256), default=0, help="Processes that judge; 0 judges in this one.")
@click.option("--scheduler", default="", metavar="tcp://...", help="Judge on a Dask cluster.")
@click.option(
    "--on", type=click.Choice(["auto", "gpu", "model"]), default="auto", show_default=True, help="What times are from."
)
@click.option("--epsilon", type=click.FloatRange(0), help="Stop within this share of the speed of light.")
@click.option("--attempts", type=click.IntRange(1), help="Stop after so many candidates without gain.")
@click.option("--model", default="", help="Of the planner llm; docs/planner-llm.md says which.")
@click.option("--base-url", metavar="URL", help="Of an endpoint that speaks the Messages API, for the planner llm.")
@click.option("--dollars", type=click.FloatRange(0, min_open=True), help="Most that the planner llm may spend.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Deliver the best design there at the end, with a certificate and a report.",
)
@click.option("--runs", is_flag=True, help="List the runs of the journal.")
@json_option
def optimize_command(
    problem: str | None,
    target: str,
    sizes: str,
    seconds: float | None,
    trials: int | None,
    planner: PlannerName,
    seed: int,
    resume: str,
    journal: Path | None,
    workers: int,
    scheduler: str,
    on: str,
    epsilon: float | None,
    attempts: int | None,
    model: str,
    base_url: str | None,
    dollars: float | None,
    out: Path | None,
    runs: bool,
    as_json: bool,
) -> Outcome:
    """Search for the fastest design of PROBLEM, such as gemm:8192x8192x8192:bf16, that is proved.

    PROBLEM may be FILE or FILE:KERNEL, with --sizes: a kernel or a family of the user's own, beside a function
    `reference` on NumPy arrays that are named as the kernel's inputs.

    Each candidate goes through a gate: it is traced, its invariants are proved, it is run in the interpreter beside a
    float64 reference, compiled, and on a GPU checked again and timed; without one its time is predicted. What stops a
    candidate is shown with its counterexample. Ctrl-C ends the search and tells the best so far; every answer is in
    the journal as soon as it is known, and --resume goes on from there. With --out the search ends, also on Ctrl-C,
    with a folder that holds the kernel, a script that launches it, a certificate for `argus certify`, and report.html.
    """
    screen = Screen()
    if runs:
        return _runs(journal or journal_path(), screen, as_json=as_json)
    if problem is None and not resume:
        raise click.UsageError("give a problem, such as gemm:4096x4096x4096:bf16, or --resume RUN")
    limits = Limits(seconds, trials, Rule(epsilon, attempts))
    asked_of = _model(model, base_url, dollars)
    settings = Settings(planner, limits, seed, resume, journal, workers, scheduler, model=asked_of)
    first = _first(settings) if resume else None
    if first is None:
        asked = problem_of(problem or "", target, sizes)
    else:
        asked = problem_of(first.problem, first.target)
        on = _as_begun(first, resume, problem, sizes, on)
    settings = evolve(settings, gpu=_gpu("model" if on == "auto" and not isinstance(asked, Gemm) else on, asked.target))
    if out is not None:
        product(asked)
    teller = Teller(asked.bounds, trials)
    tell: Callable[[Event], None] = (lambda _: None) if as_json else (lambda event: screen.lines(teller.lines(event)))
    found = optimize(str(asked), asked.target, settings, tell)
    if not as_json:
        screen.lines(outcome_lines(found))
    written = [] if out is None else _written(found, out)
    if not as_json:
        screen.lines(f"wrote {each}" for each in written)
    return Outcome(0 if found.best or found.reason == "interrupted" else NOTHING, {**document(found), "files": written})


def _written(found: Found, folder: Path) -> list[str]:
    """The report, and the best design if there is one. Raises ArgusError (E302)."""
    paths: list[Path] = []
    if found.best is not None:
        device = gpu_at_hand().name if found.best.reward == "measured" else ""
        made = delivered(found, folder, device=device)
        paths += [folder / each.name for each in made.certificate.files.values()] + [folder / NAME]
    page = folder / "report.html"
    with Journal(found.journal) as journal:
        write_report(journal, found.run, page)
    return [str(each) for each in (*paths, page)]


def _model(model: str, base_url: str | None, dollars: float | None) -> Model:
    """Raises ArgusError (E927)."""
    found = Model(base_url=base_url)
    found = evolve(found, model=model) if model else found
    return found if dollars is None else evolve(found, limits=evolve(found.limits, dollars=dollars))


def _gpu(on: str, target: str) -> bool:
    """Whether there is a GPU that runs the target. Raises ArgusError (E406, E407) if there must be one."""
    return on != "model" and at_hand(target, required=on == "gpu")


def _first(settings: Settings) -> Started:
    with Journal(settings.journal or journal_path()) as journal:
        return journal.begun(settings.resume)


def _as_begun(first: Started, run: str, problem: str | None, sizes: str, on: str) -> str:
    """What times are from, for a run that goes on as it began. Raises UsageError where something else is asked for."""
    context = click.get_current_context()
    begun = {"target": first.target, "planner": first.planner, "seed": first.seed}
    for name, value in begun.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name] != value:
            raise click.UsageError(f"`{run}` began with --{name} {value}: leave --{name} out, or begin a new run")
    if problem is not None and str(problem_of(problem, first.target, sizes)) != first.problem:
        raise click.UsageError(f"`{run}` is of {first.problem}: leave the problem out, or begin a new run")
    if first.reward is None:
        return on
    its = "gpu" if first.reward == "measured" else "model"
    if on not in ("auto", its):
        raise click.UsageError(f"times of `{run}` are {first.reward}: leave --on out, or begin a new run")
    return its


def _runs(path: Path, screen: Screen, *, as_json: bool) -> Outcome:
    with Journal(path) as journal:
        every = journal.runs()
    if not as_json:
        screen.lines(
            f"{each.name}  {each.started.problem} on {each.started.target}, {each.started.planner}, seed"
            f" {each.started.seed}: {each.judged:,} candidates, {each.ended or 'not ended'}"
            for each in every
        )
    data = [{"name": each.name, **asdict(each.started), "judged": each.judged, "ended": each.ended} for each in every]
    return Outcome(0, {"schema": SCHEMA, "runs": data})
