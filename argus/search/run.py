"""Implements `optimize`: sets up and runs a search for the fastest proved design of a problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from html import escape
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import platformdirs
from attrs import evolve, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.bandit import CONFIDENT, EXPLOIT, Bandit
from argus.policy.baselines import Exhaustive, Random
from argus.policy.knowledge import load_techniques
from argus.policy.llm.budget import NOTHING, Spent
from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import Llm
from argus.policy.llm.settings import Settings as Model
from argus.policy.planner import Planner, State
from argus.policy.tpe import Tpe
from argus.runtime.gpu.find import visible_gpus
from argus.search.bandit_prior import feature_priors, recorded_beyond_features
from argus.search.designs.space import situation
from argus.search.designs.usual import usual_design
from argus.search.earlier_runs import earlier_runs, with_earlier_runs
from argus.search.evaluation.evaluators import CANDIDATE_SECONDS, DaskCluster, Evaluator, InProcess
from argus.search.evaluation.finals import ClusterFinals, FinalsTask
from argus.search.evaluation.gate_task import GateTask
from argus.search.evaluation.judgement import Judgement
from argus.search.evaluation.processes import WorkerProcesses
from argus.search.events import (
    Ended,
    Event,
    Judged,
    LastRound,
    Proposed,
    Reason,
    Resumed,
    Started,
    Update,
    best_of,
    settled_times,
)
from argus.search.interrupts import Interrupts
from argus.search.journal import Journal
from argus.search.llm_client import Client, connect
from argus.search.llm_loop import ModelSession
from argus.search.loop import Limits, Search, replay_events
from argus.search.policy_memory import earlier_lessons
from argus.search.problems.problem import Problem, problem_of
from argus.search.problems.texts import kernel_text, problem_view, shown_name

PlannerName = Literal["bandit", "llm", "random", "exhaustive", "tpe"]
_LEARNING = ("bandit", "llm")
"""Planners that begin with what earlier runs have found."""
_PACKAGES = ("attrs", "z3-solver", "cvc5", "ziglang", "nvidia-cuda-nvrtc")


@frozen
class Settings:
    """limits: the search stops at the first one reached.

    resume: name of a journaled run to continue; its problem, planner and seed apply. model: settings of the planner
    `llm`. workers: number of worker processes; 0 evaluates in this process, except with the planner `llm`. scheduler:
    address of a Dask scheduler, to use its workers instead. gpu: whether times are measured. kept: folder for the
    candidates' code.
    """

    planner: PlannerName = "bandit"
    limits: Limits = Limits()  # noqa: RUF009 reason: frozen
    seed: int = 0
    resume: str = ""
    journal: Path | None = None
    workers: int = 0
    scheduler: str = ""
    gpu: bool = False
    kept: Path | None = None
    model: Model = Model()  # noqa: RUF009 reason: frozen


@frozen
class SearchResult:
    """Result of a run. best: None if no candidate passed. reason: why it ended. seed: of the planner.

    text: source of the best candidate if a model wrote it. spent: on model questions; None without a model.
    last_round: the best candidates timed together; None with predicted times. settled: by name the median times of
    those that last rounds have measured.
    """

    problem: Problem
    run: str
    journal: Path
    best: Judgement | None
    judged: tuple[Judgement, ...]
    reason: Reason
    seed: int = 0
    text: str = ""
    spent: Spent | None = None
    last_round: LastRound | None = None
    settled: Mapping[str, float] = field(factory=dict[str, float])

    def __str__(self) -> str:
        """The best candidate and its time, how many were judged, and why the run ended."""
        best = "no candidate passed" if self.best is None else f"best {self.best.name}{_time_text(self.best)}"
        count = sum(each.outcome == "timed" for each in self.judged)
        return (
            f"{shown_name(self.problem)}: {best}; {count} of {len(self.judged)} candidates passed; {self.reason}; "
            f"run {self.run} in {self.journal}"
        )

    def __repr__(self) -> str:
        return f"<SearchResult {self}>"

    def _repr_html_(self) -> str:
        """The text, and a table of the candidates, the fastest first."""
        ranked = sorted(self.judged, key=lambda each: (each.outcome != "timed", each.microseconds or 0.0))
        rows = "".join(_row(each) for each in ranked[:_SHOWN])
        more = f"<p>and {len(ranked) - _SHOWN} more</p>" if len(ranked) > _SHOWN else ""
        head = "<tr><th>candidate</th><th>outcome</th><th>time</th><th>why</th></tr>"
        return f"<p>{escape(str(self))}</p><table>{head}{rows}</table>{more}"


_SHOWN = 20
"""Candidates that a notebook shows."""


def _row(judgement: Judgement) -> str:
    shown = (judgement.name, judgement.outcome, _time_text(judgement).removeprefix(", "), judgement.why)
    return f"<tr>{''.join(f'<td>{escape(each)}</td>' for each in shown)}</tr>"


def _time_text(judgement: Judgement) -> str:
    return "" if judgement.microseconds is None else f", {judgement.microseconds:.1f} us {judgement.reward}"


def journal_path() -> Path:
    """Default path of the journal."""
    return platformdirs.user_data_path("argus") / "runs.db"


def planner_of(name: str, problem: Problem, model: Model) -> Planner:
    """The planner of a name. Raises ArgusError (E905) for an unknown name."""
    recorded = recorded_beyond_features(problem)
    bandit = Bandit(feature_priors(problem), recorded=recorded)
    if recorded:
        bandit = evolve(bandit, trust=CONFIDENT, exploit=EXPLOIT)
    match name:
        case "bandit":
            return bandit
        case "llm":
            return Llm(bandit, spread=model.spread)
        case "random":
            return Random()
        case "exhaustive":
            return Exhaustive()
        case "tpe":
            return Tpe()
        case _:
            message = f"there is no planner `{name}`, expected bandit, llm, random, exhaustive or tpe"
            raise ArgusError(Diagnostic("E905", "error", message, help="leave --planner out for the bandit"))


def optimize(
    problem: str,
    target: str = "sm_90a",
    settings: Settings = Settings(),
    tell: Callable[[Update], None] = lambda _event: None,
    sizes: str = "",
    interrupts: Interrupts | None = None,
) -> SearchResult:
    """Search for the fastest proved design of a problem such as "gemm:4096x4096x4096:bf16", or of a kernel file.

    sizes: of a kernel file, such as "M=4096,N=4096,K=4096"; its target is that of its kernels. tell: called with each
    update. interrupts: of a caller that defers interrupts beyond the search. Ctrl-C ends the search and returns the
    result so far.

    Raises ArgusError: E903 for an unknown problem or target, E904 for an unusable journal, E905 for an unknown planner
    or unreachable scheduler, E303 without a compiler, E6xx without a solver.
    """
    begun, path = monotonic(), settings.journal or journal_path()
    with Interrupts() if interrupts is None else nullcontext(interrupts) as held, Journal(path) as journal:
        events = journal.events(settings.resume) if settings.resume else ()
        first = journal.begun(settings.resume) if events else _started(settings, problem, target, sizes)
        if not events and first.planner in _LEARNING:
            first = evolve(first, earlier=earlier_runs(journal, first))
        with _client(first.planner, settings.model) as client, closing(_evaluator(first, settings)) as evaluator:
            asked = problem_of(first.problem, first.target)
            planner = planner_of(first.planner, asked, settings.model)
            begins = with_earlier_runs(journal, first, situation(asked))
            before = replay_events(events, planner, begins, first.seed)
            _check_same_reward(settings, events)
            name = settings.resume or journal.begin(first)
            held.hold()
            with journal.held(name):

                def record(event: Event) -> None:
                    journal.append(name, event)

                earlier = earlier_lessons(journal, name, first.problem, first.target) if client else ()
                asking = _asking(client, planner, asked, events, earlier)
                search = Search(
                    planner, evaluator, settings.limits, before.state, record, asking, held.may_leave, begun=begun
                )
                if settings.gpu:
                    finals = FinalsTask(GateTask(first.problem, first.target, gpu=True, folder=settings.kept).prepare)
                    search.last_round = ClusterFinals(finals, settings.scheduler) if settings.scheduler else finals
                    search.settled, search.failed = before.settled, before.failed
                    search.usual, _ = usual_design(asked)
                opening = _resumed(before.state) if events else first
                if events:
                    record(opening)
                tell(opening)
                for event in events:
                    if isinstance(event, Proposed) and event.name in before.under_way:
                        tell(event)
                reason: Reason = "interrupted"
                for event in search.go(before.under_way):
                    tell(event)
                    reason = event.reason if isinstance(event, Ended) else reason
                return _found(asked, name, path, journal.events(name), reason, first.seed, search.state)


def _found(
    problem: Problem,
    name: str,
    path: Path,
    events: Sequence[Event],
    reason: Reason,
    seed: int,
    state: State[Any],
) -> SearchResult:
    best = best_of(events)
    every = tuple(each.judgement for each in events if isinstance(each, Judged))
    last = next((each for each in reversed(events) if isinstance(each, LastRound)), None)
    tried = {each.choice.name: each.choice.text for each in state.situation.tried}
    text = "" if best is None else tried.get(best.name, "")
    return SearchResult(
        problem, name, path, best, every, reason, seed, text, _spent(state), last, settled_times(events)
    )


def _spent(state: State[Any]) -> Spent | None:
    return state.memory.spent if isinstance(state.memory, Memory) else None


def _check_same_reward(settings: Settings, events: tuple[Event, ...]) -> None:
    """Raises ArgusError (E905) if a resumed run would mix measured and predicted times."""
    wanted = "measured" if settings.gpu else "predicted"
    timed = (each.judgement for each in events if isinstance(each, Judged) and each.judgement.microseconds is not None)
    begun = (each.reward for each in events if isinstance(each, Started))
    for reward in (*begun, *(each.reward for each in timed)):
        if reward not in (None, wanted):
            message = f"times of `{settings.resume}` are {reward}, but new ones would be {wanted}"
            advice = f"continue with --on {'model' if settings.gpu else 'gpu'}, or start a new run"
            raise ArgusError(Diagnostic("E905", "error", message, help=advice))


def _evaluator(first: Started, settings: Settings) -> Evaluator:
    """Raises ArgusError (E905)."""
    return evaluator_of(GateTask(first.problem, first.target, settings.gpu, settings.kept), settings, first.planner)


def _client(planner: str, model: Model) -> AbstractContextManager[Client | None]:
    """The client of the model's endpoint for the planner `llm`. Raises ArgusError: E920, E921, E927."""
    return connect(model) if planner == "llm" else nullcontext()


def _asking(
    client: Client | None,
    planner: Planner,
    problem: Problem,
    before: tuple[Event, ...],
    earlier: tuple[str, ...],
) -> ModelSession | None:
    """The model session of the planner `llm`; None for other planners.

    before: past events of the run. earlier: lessons of other runs.
    """
    if client is None or not isinstance(planner, Llm):
        return None
    about = problem_view(problem, earlier)
    made = ModelSession(client, planner, partial(kernel_text, problem), load_techniques(), about)
    for event in before:
        made.observe(event)
    return made


def _started(settings: Settings, problem: str, target: str, sizes: str) -> Started:
    """The first event of a new run."""
    asked = problem_of(problem, target, sizes)
    planner_of(settings.planner, asked, settings.model)
    seen = situation(asked)
    return Started(
        str(asked),
        asked.target,
        settings.planner,
        settings.seed,
        seen.bound,
        seen.bottleneck,
        len(seen.options),
        _versions(),
        "measured" if settings.gpu else "predicted",
    )


def _resumed(reached: State[Any]) -> Resumed:
    best, spent = reached.situation.best, _spent(reached) or NOTHING
    techniques = () if best is None else tuple(map(str, best.choice.steps))
    microseconds = None if best is None else best.microseconds
    return Resumed(len(reached.situation.tried), microseconds, techniques, spent.tokens, spent.dollars)


def evaluator_of(judging: GateTask, settings: Settings, planner: str) -> Evaluator:
    """The executor by settings. Kernels written by a model may hang the gate, so they need a killable process."""
    if settings.scheduler:
        return DaskCluster(judging, settings.scheduler, CANDIDATE_SECONDS)
    workers = max(1, settings.workers) if planner == "llm" else settings.workers
    if not workers:
        return InProcess(judging)
    if not judging.gpu:
        return WorkerProcesses(judging, workers, CANDIDATE_SECONDS)
    # Outputs of a GPU are compared with large products: each worker gets its share of the processors.
    share = max(1, (os.cpu_count() or 1) // workers)
    return WorkerProcesses(judging, workers, CANDIDATE_SECONDS, visible_gpus(), blas_threads=share)


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("argus", *_PACKAGES) if _installed(name)}


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except ModuleNotFoundError:
        return False
