"""`argus optimize`: searches for the fastest proved design of a problem; can run unattended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from attrs import asdict, evolve
from click.core import ParameterSource

from argus.cli.options import json_option
from argus.cli.screen import Screen
from argus.cli.search.page.page import write_report
from argus.cli.search.page.record import events_text
from argus.cli.search.progress import Bar, show_bar
from argus.cli.search.text import SearchLog, outcome_lines
from argus.core.diagnostic import ArgusError
from argus.core.target import TARGETS
from argus.policy.llm.budget import Limits as Allowance
from argus.policy.llm.settings import Settings as Model
from argus.policy.stopping import Rule
from argus.report.atomic_write import write_whole
from argus.report.command_result import Outcome
from argus.runtime.gpu.find import find_gpu as gpu_at_hand
from argus.search.certificates.certificate import NAME
from argus.search.certificates.delivery import deliver
from argus.search.certificates.module_delivery import deliver_module
from argus.search.certificates.output_dir import EVENTS, REPORT, check_writable, staged_output
from argus.search.document import SCHEMA, result_document
from argus.search.evaluation.gpu import gpu_available
from argus.search.events import Started, Update
from argus.search.interrupts import Interrupts
from argus.search.journal import Journal
from argus.search.loop import Limits
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.families.torch_module import benchmark_name
from argus.search.problems.kernel_file import KernelFile
from argus.search.problems.problem import Problem, display_name, problem_of
from argus.search.run import PlannerName, SearchResult, Settings, journal_path, optimize

NOTHING, INTERRUPTED = 1, 130
_FIXED = ("target", "sizes", "planner", "seed")
"""Options that a resumed run takes from its start."""
_OF_MODEL = ("model", "base_url", "dollars", "tokens")


@click.command("optimize")
@click.argument("problem", required=False, metavar="PROBLEM")
@click.option("--target", default="sm_90a", show_default=True, help=" or ".join(each.name for each in TARGETS))
@click.option(
    "--checkout",
    type=click.Path(file_okay=False, path_type=Path),
    help="Checkout of KernelBench, for PROBLEM kernelbench:LEVEL/NUMBER.",
)
@click.option("--sizes", default="", metavar="M=4096,...", help="Sizes of a PROBLEM that is a file: all of them.")
@click.option("--budget-seconds", "seconds", type=click.FloatRange(0, min_open=True), help="Time limit of the search.")
@click.option("--trials", type=click.IntRange(1), help="Maximum number of candidates.")
@click.option(
    "--planner",
    type=click.Choice(["bandit", "llm", "random", "exhaustive", "tpe"]),
    default="bandit",
    show_default=True,
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option("--resume", metavar="RUN", default="", help="Resume a run from the journal.")
@click.option("--journal", type=click.Path(dir_okay=False, path_type=Path), help="Journal file of search runs.")
@click.option(
    "--workers",
    type=click.IntRange(0, 256),
    default=1,
    show_default=True,
    help="Worker processes that evaluate candidates; 0: this process, without time limits per candidate.",
)
@click.option("--scheduler", default="", metavar="tcp://...", help="Evaluate candidates on a Dask cluster.")
@click.option(
    "--on", type=click.Choice(["auto", "gpu", "model"]), default="auto", show_default=True, help="Source of times."
)
@click.option("--epsilon", type=click.FloatRange(0), help="Stop within this fraction of the speed of light.")
@click.option("--attempts", type=click.IntRange(1), help="Stop after this many candidates without improvement.")
@click.option("--model", default="", help="Language model of the planner llm; see docs/planner-llm.md.")
@click.option("--base-url", metavar="URL", help="Endpoint with the Messages API, for the planner llm.")
@click.option("--dollars", type=click.FloatRange(0, min_open=True), help="Spending limit of the planner llm.")
@click.option("--tokens", type=click.IntRange(1), help="Token limit of the planner llm.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the best design, its certificate and a report.",
)
@click.option("--runs", is_flag=True, help="List the runs of the journal.")
@json_option
@click.pass_context
def optimize_command(
    context: click.Context,
    problem: str | None,
    target: str,
    checkout: Path | None,
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
    tokens: int | None,
    out: Path | None,
    runs: bool,
    as_json: bool,
) -> Outcome:
    """Search for the fastest proved design of PROBLEM, such as gemm:8192x8192x8192:bf16.

    Other families are attention:4x16x4096x128:causal, conv:32x64x56x56:64x3x3:pad=1, rows:softmax:8192x4096 and
    moe:4096x2048x1408:experts=64:topk=6. FILE:NAME is a module or function of torch, for which FILE defines
    `get_inputs`; kernelbench:1/23 is one in the folder of --checkout.

    PROBLEM may also be FILE or FILE:KERNEL, with --sizes: the file has your kernel, or family of kernels, and a
    function `reference` whose parameters are NumPy arrays with the names of the kernel's inputs.

    Each candidate must pass a gate: it is traced, its invariants are proved, it is interpreted and compared with a
    float64 reference, compiled, and then checked and timed on a GPU; without a GPU its time is predicted. A rejected
    candidate is shown with its counterexample. Ctrl-C ends the search and prints the best so far. Every result is
    written to the journal at once, and --resume continues from there. With --out the search writes, also after
    Ctrl-C, a folder with the kernel, a launch script, a certificate for `argus certify`, and report.html.
    """
    screen = Screen()
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if runs:
        return _runs(journal or journal_path(), screen, as_json=as_json)
    if problem is None and not resume:
        raise click.UsageError("give a problem, such as gemm:4096x4096x4096:bf16, or --resume RUN")
    if problem is not None and problem.startswith("kernelbench:"):
        problem = benchmark_name(problem, checkout)
    limits = Limits(seconds, trials, Rule(epsilon, attempts))
    settings = Settings(planner, limits, seed, resume, journal, workers, scheduler)
    first = _first(settings) if resume else None
    asked = problem_of(first.problem, first.target) if first else problem_of(problem or "", target, sizes)
    _check_given(given, first)
    if first and first.reward and on == "auto":
        on = "gpu" if first.reward == "measured" else "model"
    settings = evolve(settings, model=_model(model, base_url, dollars, tokens), gpu=_gpu(on, asked.target))
    if out is not None:
        check_writable(out)
    with Interrupts(ending=True) as interrupts:
        found = _searched(asked, settings, interrupts, None if as_json else screen)
        written, whole = ([], True) if out is None else _written(found, out, interrupts)
    if not as_json:
        screen.lines([f"wrote {each}" for each in written] if whole else _left_out(found, out))
    code = INTERRUPTED if not whole else 0 if found.best or found.reason == "interrupted" else NOTHING
    return Outcome(code, {**result_document(found), "files": written})


def _searched(asked: Problem, settings: Settings, interrupts: Interrupts, screen: Screen | None) -> SearchResult:
    """Run the search and print its events, if there is a screen. Before an error ends it, print the best so far."""
    if screen is None:
        return optimize(str(asked), asked.target, settings, interrupts=interrupts)
    counted = asked.counted.description if isinstance(asked, KernelFile) else ""
    log = SearchLog(asked.bounds, settings.limits.trials, settings.model.limits, counted)
    bar = Bar(settings.limits, asked.bounds)

    def show(event: Update) -> None:
        bar.update(event)
        screen.lines(log.lines(event))

    try:
        with show_bar(bar, screen.console):
            found = optimize(str(asked), asked.target, settings, show, interrupts=interrupts)
    except ArgusError:
        screen.lines(log.best_at_error())
        raise
    screen.lines(outcome_lines(found, settings.model.limits))
    return found


def _check_given(given: Mapping[str, object], first: Started | None) -> None:
    """Reject options that conflict with a resumed run or with the planner. first: start event of the resumed run.

    Raises UsageError.
    """
    if first is not None:
        has: dict[str, object] = {"planner": first.planner, "seed": first.seed, "target": first.target}
        for name in _FIXED:
            if name in given and given[name] != has.get(name):
                raise click.UsageError(f"a resumed run has its own {name}: leave --{name} out")
        asked = given.get("problem")
        if asked is not None and str(problem_of(str(asked), first.target)) != first.problem:
            raise click.UsageError(f"the resumed run is for {first.problem}: leave PROBLEM out")
    planner = first.planner if first is not None else given.get("planner")
    llm_options = [name for name in _OF_MODEL if name in given]
    if llm_options and planner != "llm":
        raise click.UsageError(f"--{llm_options[0].replace('_', '-')} needs the planner llm: add --planner llm")


def _left_out(found: SearchResult, out: Path | None) -> list[str]:
    return [
        f"interrupted: nothing was written to {out}; to write it without further search:",
        f"  --resume {found.run} --trials {max(1, len(found.judged))} --out {out}",
    ]


def _written(found: SearchResult, folder: Path, interrupts: Interrupts) -> tuple[list[str], bool]:
    """Write the report, and the best design if there is one: all files, or none if Ctrl-C interrupts the writing.

    Returns the paths written, and whether writing completed. Raises ArgusError (E302).
    """
    try:
        with staged_output(folder) as made, interrupts.may_leave():
            names, of_user = [REPORT], _is_of_file(found.problem)
            if found.best is not None and isinstance(found.problem, FamilyProblem) and of_user:
                names = [*deliver_module(found, made), REPORT]
            elif found.best is not None:
                device = gpu_at_hand().name if found.best.reward == "measured" else ""
                delivered = deliver(found, made, device=device).certificate
                files = [each for of in (delivered.files, *delivered.launches) for each in of.values()]
                names = [*(each.name for each in files), NAME, REPORT]
            with Journal(found.journal) as journal:
                write_report(journal, found.run, made / REPORT)
                if found.best is not None and not of_user:
                    write_whole(made / EVENTS, events_text(journal.events(found.run)).encode())
                    names.append(EVENTS)
    except KeyboardInterrupt:
        return [], False
    return [str(folder / each) for each in names], True


def _is_of_file(problem: Problem) -> bool:
    """Whether the problem is a file of the user's, whose path the events contain."""
    return isinstance(problem, KernelFile) or (isinstance(problem, FamilyProblem) and problem.is_of_file)


def _model(model: str, base_url: str | None, dollars: float | None, tokens: int | None) -> Model:
    """Settings of the language model. A model of unknown price needs a token limit. Raises ArgusError (E927)."""
    found = Model(base_url=base_url)
    found = evolve(found, model=model) if model else found
    usual = None if found.pricing is None and tokens is not None else found.limits.dollars
    return evolve(found, limits=Allowance(usual if dollars is None else dollars, tokens))


def _gpu(on: str, target: str) -> bool:
    """Whether to use a GPU that runs the target. Raises ArgusError (E406, E407) if one is required but absent."""
    return on != "model" and gpu_available(target, required=on == "gpu")


def _first(settings: Settings) -> Started:
    with Journal(settings.journal or journal_path()) as journal:
        return journal.begun(settings.resume)


def _runs(path: Path, screen: Screen, *, as_json: bool) -> Outcome:
    with Journal(path) as journal:
        every = journal.runs()
    if not as_json:
        screen.lines(
            f"{each.name}  {display_name(each.started.problem)} on {each.started.target}, {each.started.planner}, seed"
            f" {each.started.seed}: {each.judged:,} candidates, {each.ended or 'not ended'}"
            for each in every
        )
    data = [{"name": each.name, **asdict(each.started), "judged": each.judged, "ended": each.ended} for each in every]
    return Outcome(0, {"schema": SCHEMA, "runs": data})
