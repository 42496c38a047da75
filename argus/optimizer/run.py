"""`optimize`: a search from a problem's name to its fastest proved design."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal, cast

import platformdirs
from attrs import evolve, frozen

from argus.api import build, verify
from argus.core.cost.predict import predict
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.llm import Client, connect
from argus.optimizer.asking import Asking, text_of
from argus.optimizer.claim import claimed
from argus.optimizer.device import Gpu
from argus.optimizer.evaluators import Cluster, Evaluator, Here, Processes
from argus.optimizer.events import Ended, Event, Judged, Reason, Resumed, Started
from argus.optimizer.gate import Tools, judged
from argus.optimizer.interrupts import Interrupts
from argus.optimizer.journal import Journal
from argus.optimizer.judgement import Judgement
from argus.optimizer.problem import Problem, problem_of
from argus.optimizer.search import Limits, Search, past
from argus.optimizer.space import situation, technique
from argus.policy.bandit import CONSTANT, Bandit, Weight
from argus.policy.baselines import Exhaustive, Random
from argus.policy.experience import experience
from argus.policy.knowledge import load
from argus.policy.llm.planner import Llm
from argus.policy.llm.settings import Settings as Model
from argus.policy.planner import Planner, Situation
from argus.policy.tpe import Tpe
from argus.solvers.cache import Cache

PlannerName = Literal["bandit", "llm", "random", "exhaustive", "tpe"]
CANDIDATE_SECONDS = 300.0
"""The longest that one candidate may take before it is given up."""
_JUDGES = ("attrs", "z3-solver", "cvc5", "ziglang", "nvidia-cuda-nvrtc")


@frozen
class Judging:
    """The gate for a problem, fit for pickling: what goes to a worker. gpu: whether times are measured."""

    problem: str
    target: str
    gpu: bool = False
    folder: Path | None = None

    def __call__(self, name: str, text: str = "") -> Judgement:
        tools = evolve(_tools(), device=_gpu() if self.gpu else None, folder=self._folder(name))
        return judged(problem_of(self.problem, self.target), name, tools, text)

    def _folder(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / name


@cache
def _tools() -> Tools:
    return Tools(
        lambda kernel: verify(kernel, cache=Cache()), lambda kernel, folder: build(kernel, directory=folder), predict
    )


@cache
def _gpu() -> Gpu:
    return Gpu()


@frozen
class Settings:
    """limits: when to stop, at what is reached first.

    resume: the name of a run of the journal to go on with, whose problem, planner, seed and kind of times are taken
    from there.
    model: what is asked, on which terms, where the planner is `llm`. workers: candidates at once, each in a process
    of its own; 0 judges in this one, unless a model writes some of them. scheduler: the address of a Dask scheduler,
    for its workers instead. gpu: whether times are measured. kept: where code of candidates goes.
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
class Found:
    """What a run came to. best: None if nothing passed. reason: why it ended. seed: of its random choices.

    text: of the best, where it is a kernel that somebody wrote.
    """

    problem: Problem
    run: str
    journal: Path
    best: Judgement | None
    judged: tuple[Judgement, ...]
    reason: Reason
    seed: int = 0
    text: str = ""


def journal_path() -> Path:
    """Where runs are kept unless a user names a file."""
    return platformdirs.user_data_path("argus") / "runs.db"


def planner_of(name: str, problem: Problem, model: Model) -> Planner:
    """Raises ArgusError (E905) for a name that is none."""
    bandit = Bandit(beliefs(problem.target))
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


FIT: Mapping[str, Weight] = {
    CONSTANT: Weight(-1.0, 0.5),
    "last wave": Weight(1.0, 0.3),
    "edge": Weight(1.0, 0.3),
    "products a byte": Weight(1.0, 0.5),
}
"""Of features that are no techniques: empty places of a wave, and of a tile, are time lost."""


def beliefs(target: str) -> dict[str, Weight]:
    """What a bandit believes before a search: what earlier problems taught, else what techniques promise."""
    effects = {technique(each.name): each.effect for each in load() if target in each.targets}
    promised = {name: Weight(each.log_mean, each.log_deviation) for name, each in effects.items()}
    return {**FIT, **promised, **experience(target)}


def optimize(
    problem: str,
    target: str = "sm_90a",
    settings: Settings = Settings(),
    tell: Callable[[Event], None] = lambda _event: None,
    sizes: str = "",
) -> Found:
    """Search for the fastest proved design of a problem such as "gemm:4096x4096x4096:bf16", or of a kernel file.

    sizes: of a kernel file, such as "M=4096,N=4096,K=4096"; its target is that of its kernels.

    Raises ArgusError: E903 for a problem or target that is none, E904 for a journal that does not serve, E905 for
    a planner or scheduler that is not there, E303 without a compiler, E6xx without a solver.
    """
    path = settings.journal or journal_path()
    with Journal(path) as journal, ExitStack() as held:
        if settings.resume:
            held.enter_context(claimed(path, settings.resume))
            settings = resumed(settings, journal)
        client = held.enter_context(_client(settings))
        first, name, events = _opened(journal, settings, problem, target, sizes)
        if not settings.resume:
            held.enter_context(claimed(path, name))
        interrupts = Interrupts()
        held.enter_context(interrupts.heard())
        asked = problem_of(first.problem, first.target)
        planner = planner_of(first.planner, asked, settings.model)
        before = past(events, planner, situation(asked), first.seed)
        asking = _asking(client, planner, asked)
        for event in events:
            if asking is not None:
                asking.saw(event)
        judging = Judging(first.problem, first.target, settings.gpu, settings.kept)

        def record(event: Event) -> None:
            journal.append(name, event)

        evaluator = evaluator_of(judging, settings)
        search = Search(planner, evaluator, settings.limits, before.state, record, asking, interrupts=interrupts)
        begun = _resumed(before.state.situation) if events else first
        if events:
            record(begun)
        tell(begun)
        reason: Reason = "interrupted"
        for event in search.go(before.under_way):
            tell(event)
            reason = event.reason if isinstance(event, Ended) else reason
        every = [each.judgement for each in journal.events(name) if isinstance(each, Judged)]
        best = best_of(every)
        tried = {each.choice.name: each.choice.text for each in search.state.situation.tried}
        text = "" if best is None else tried.get(best.name, "")
        return Found(asked, name, path, best, tuple(every), reason, first.seed, text)


def resumed(settings: Settings, journal: Journal) -> Settings:
    """With what the run that they go on with has begun with. Raises ArgusError (E904) where there is no such run."""
    first = journal.begun(settings.resume)
    gpu = settings.gpu if first.reward is None else first.reward == "measured"
    return evolve(settings, planner=cast("PlannerName", first.planner), seed=first.seed, gpu=gpu)


def _client(settings: Settings) -> AbstractContextManager[Client | None]:
    """Of the model's endpoint, where one is asked. Raises ArgusError: E920, E921, E927."""
    return connect(settings.model) if settings.planner == "llm" else nullcontext()


def _asking(client: Client | None, planner: Planner, problem: Problem) -> Asking | None:
    if client is None or not isinstance(planner, Llm):
        return None
    return Asking(client, planner, partial(text_of, problem), load())


def _opened(
    journal: Journal, settings: Settings, problem: str, target: str, sizes: str
) -> tuple[Started, str, tuple[Event, ...]]:
    """The first event of a run, its name, and the events that it has if it goes on."""
    if settings.resume:
        return journal.begun(settings.resume), settings.resume, journal.events(settings.resume)
    asked = problem_of(problem, target, sizes)
    planner_of(settings.planner, asked, settings.model)
    seen = situation(asked)
    first = Started(
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
    return first, journal.begin(first), ()


def _resumed(reached: Situation) -> Resumed:
    best = reached.best
    return Resumed(len(reached.tried), None if best is None else best.microseconds)


def best_of(every: list[Judgement]) -> Judgement | None:
    """The fastest; of equals the first."""
    return min(
        (each for each in every if each.microseconds is not None),
        key=lambda each: each.microseconds or 0.0,
        default=None,
    )


def evaluator_of(judging: Judging, settings: Settings) -> Evaluator:
    """What a model has written may hang whoever judges it: that is another process, which can be stopped."""
    if settings.scheduler:
        return Cluster(judging, settings.scheduler, CANDIDATE_SECONDS)
    workers = max(1, settings.workers) if settings.planner == "llm" else settings.workers
    return Processes(judging, workers, CANDIDATE_SECONDS) if workers else Here(judging)


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("argus", *_JUDGES) if _installed(name)}


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except ModuleNotFoundError:
        return False
