"""Two-stage autotuning: times all candidates briefly, the finalists thoroughly, and stores the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from argus.core.diagnostic import ArgusError
from argus.ops.choice import select
from argus.runtime import tuning_db
from argus.runtime.processes.watchdog import WatchedProcess
from argus.runtime.tuning_db import Key, TunedConfig
from argus.search.tuning.measure import BRIEF, Job, Medians, Shape, device_name, measure_brief, measure_thorough

FINALISTS = 5
ROUNDS = 8
_BRIEF_ROUNDS = 3
_MOST_LOST = 4
"""Number of candidates that may crash or hang the process before a shape fails."""
_FATAL = {"E409", "E410"}


@frozen
class Result:
    """Times of one shape; thorough ones if `finished`. chosen: the cost model's choice.

    lost: candidates that hung or crashed, with reasons. first: microseconds of all candidates in the brief stage.
    """

    shape: Shape
    timed: Medians
    tried: int
    chosen: str
    finished: bool
    lost: Mapping[str, str] = field(factory=dict[str, str])
    first: Mapping[str, float] = field(factory=dict[str, float])

    @property
    def best(self) -> str:
        """Name of the fastest candidate."""
        return self.timed.order()[0]

    def found(self) -> TunedConfig:
        """The entry for the tuning database."""
        times = {regime: each[self.best] for regime, each in self.timed.medians.items()}
        return TunedConfig(self.best, times, self.tried, self.finished)

    def ratios(self) -> dict[str, float]:
        """By regime, time of the cost model's choice over the fastest time; empty if the choice has no time."""
        return {
            regime: each[self.chosen] / min(each.values())
            for regime, each in self.timed.medians.items()
            if self.chosen in each
        }


Paths = Mapping[str, str]


def search_shapes(
    child: WatchedProcess, shapes: Sequence[Shape], paths: Paths, rounds: int = ROUNDS
) -> Iterator[Result]:
    """Yield the result of each shape; on an interrupt, an unfinished result and then KeyboardInterrupt.

    Raises ArgusError: E406, E407, E408.
    """
    left = dict(paths)
    for shape in shapes:
        first, lost = _brief(child, shape, left)
        chosen = select(*shape)
        every = first.medians[BRIEF.name]
        if not every:
            continue
        result = Result(shape, first, len(every), chosen, finished=False, lost=lost, first=every)
        leading = first.order()[:FINALISTS]
        final = leading if chosen in leading or chosen not in every else [*leading, chosen]
        try:
            last = child.call(measure_thorough, Job(shape, {name: paths[name] for name in final}, rounds))
        except KeyboardInterrupt:
            yield result
            raise
        except ArgusError as problem:
            if problem.diagnostic.code not in _FATAL:
                raise
            yield evolve(result, lost={**lost, ", ".join(final): str(problem)})
            continue
        yield evolve(result, timed=evolve(last, left_out=first.left_out, wrong=first.wrong), finished=True)


def _brief(child: WatchedProcess, shape: Shape, left: dict[str, str]) -> tuple[Medians, dict[str, str]]:
    """The brief stage. A candidate that hangs or crashes is removed, and the others are measured again."""
    lost: dict[str, str] = {}
    while True:
        try:
            return child.call(measure_brief, Job(shape, dict(left), _BRIEF_ROUNDS)), lost
        except ArgusError as problem:
            guilty = child.last_note
            if problem.diagnostic.code not in _FATAL or guilty not in left or len(lost) >= _MOST_LOST:
                raise
            lost[guilty] = str(problem)
            del left[guilty]


def query_device_name(child: WatchedProcess) -> str:
    """Name of the GPU. Raises ArgusError: E406 without a GPU, E407 if it is of another kind."""
    return child.call(device_name)


def stored_results(device: str, results: Iterable[Result]) -> Iterator[Result]:
    """Yield results and store each in the tuning database; unfinished ones only if their shape has no entry."""
    for result in results:
        key = Key(result.shape)
        if result.finished or key not in tuning_db.load_choices(device):
            tuning_db.store_choices(device, {key: result.found()})
        yield result
