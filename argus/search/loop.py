"""The search loop: the planner proposes, the gate judges and the journal records until a stopping rule applies.

The state of a run is a function of its events. To resume a run, the loop replays them, submits the candidates that
were pending again in the same order, and the planner continues as in the uninterrupted run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from attrs import define, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.last_round import finalists
from argus.policy.llm.planner import with_kernels_as_options
from argus.policy.planner import Choice, Observation, Planner, Situation, State
from argus.policy.stopping import Rule, should_stop
from argus.search.asking import PendingQuestion
from argus.search.evaluation.evaluators import Evaluator
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Asks, Ended, Event, Judged, LastRound, Proposed, Reason, Resumed, Started, Update
from argus.search.llm_loop import ModelSession, with_answer

Finals = Callable[[Mapping[str, str]], LastRound]
"""Times candidates together, given their names and texts."""


@frozen
class Limits:
    """Stop at the first limit reached. seconds: of this process; None: no such limit."""

    seconds: float | None = None
    trials: int | None = None
    rule: Rule = field(factory=Rule)


@frozen
class ReplayedRun:
    """State of a run after replaying its events.

    under_way: names of pending choices, in order. settled: whether a last round has timed the best of them together.
    failed: names of candidates that failed a check in a last round.
    """

    state: State[Any]
    under_way: tuple[str, ...]
    settled: bool = False
    failed: frozenset[str] = frozenset()


def replay_events(events: Sequence[Event], planner: Planner, situation: Situation, seed: int) -> ReplayedRun:
    """Replay the events of a run.

    Raises ArgusError (E904) for an event about an unknown choice, or a judgement of a choice that is not pending.
    """
    state = planner.start(situation, seed)
    waiting: list[str] = []
    settled, failed = False, frozenset[str]()
    for event in events:
        match event:
            case Proposed(name):
                state = state.with_pending(_open_choice(state, name).name)
                waiting.append(name)
            case Judged(judgement):
                if judgement.name not in waiting:
                    raise _damaged(f"a judgement of `{judgement.name}`, which it did not propose")
                waiting.remove(judgement.name)
                state = planner.learn(state, observation(_open_choice(state, judgement.name), judgement))
                settled = False
            case LastRound():
                settled, failed = not event.missing, failed | set(event.wrong)
            case Asked():
                state = with_kernels_as_options(with_answer(state, event))
            case Started() | Resumed() | Ended():
                pass
    return ReplayedRun(state, tuple(waiting), settled, failed)


def _open_choice(state: State[Any], name: str) -> Choice:
    found = next((each for each in state.situation.options if each.name == name), None)
    if found is None:
        raise _damaged(f"`{name}`, which is not an open design of this problem")
    return found


def _damaged(what: str) -> ArgusError:
    """The error of a journal that this version cannot have written."""
    message = f"the run cannot be resumed: its journal contains {what}"
    advice = (
        "resume it with the version of Argus that started it (see `argus optimize --runs --json`), or start a new run"
    )
    return ArgusError(Diagnostic("E904", "error", message, help=advice))


def observation(choice: Choice, judgement: Judgement) -> Observation:
    """The planner's observation of a judgement."""
    return Observation(choice, judgement.outcome, judgement.microseconds, judgement.stage, judgement.why)


@define
class Search:
    """A running search.

    record: writes an event to the journal. asking: the model session of the planner `llm`. may_leave: context of
    interruptible waits. clock: seconds, for the limits; begun: start of the time limit, if before `go`.
    last_round: times the best candidates together at the end, and `usual` with them, the design used without a search,
    if it has passed. failed: those that failed a check in an earlier one.
    settled: whether an earlier one has timed the best of all candidates so far.
    question: to the model, on its way.
    """

    planner: Planner
    evaluator: Evaluator
    limits: Limits
    state: State[Any]
    record: Callable[[Event], None]
    asking: ModelSession | None = None
    may_leave: Callable[[], AbstractContextManager[None]] = nullcontext
    clock: Callable[[], float] = time.monotonic
    begun: float | None = None
    last_round: Finals | None = None
    usual: str = ""
    failed: frozenset[str] = frozenset()
    settled: bool = False
    _flying: deque[tuple[Choice, Future[Judgement]]] = field(factory=deque[tuple[Choice, "Future[Judgement]"]])
    question: PendingQuestion | None = field(default=None, init=False)
    _asked_at: float = field(default=0.0, init=False)

    def go(self, under_way: Sequence[str] = ()) -> Iterator[Update]:
        """Run the search; yields each event after recording it, `Ended` last. under_way: choices to submit first.

        Candidates pending when the time limit is reached are cancelled, without a record.
        """
        self.begun = self.clock() if self.begun is None else self.begun
        reason: Reason = "interrupted"
        try:
            for name in under_way:
                self._submit(_open_choice(self.state, name))
            while True:
                ended = self._enough()
                while ended is None and self._room():
                    if self.asking is not None:
                        asked = yield from self._asked(self.asking)
                        if asked:
                            ended = self._enough()
                            continue
                    proposed = self._next()
                    if proposed is None:
                        break
                    event, choice = proposed
                    yield event  # before its evaluation, which may take long
                    self._submit(choice)
                if ended is not None or not (self._flying or self.question):
                    reason = ended or "nothing left"
                    break
                landed = self._landed()
                if landed is not None:
                    yield landed
        except KeyboardInterrupt:
            reason = "interrupted"
        finally:
            self.evaluator.close()
        if self.asking is not None and self.question is not None:
            dropped = self.asking.abandoned(self.question)
            self.state = with_answer(self.state, dropped)
            yield self._told(dropped)
        if self.last_round is not None and not self.settled and reason != "interrupted":
            try:
                yield from self._finals(self.last_round)
            except KeyboardInterrupt:
                reason = "interrupted"
        yield self._told(Ended(reason))

    def _finals(self, measure: Finals) -> Iterator[Event]:
        """Time the best candidates together. A single one is timed, too: its one measurement may be a lucky one."""
        tried = self.state.situation.tried
        times = {each.choice.name: each.microseconds for each in tried if each.microseconds}
        right = {name: time for name, time in times.items() if name not in self.failed}
        names = finalists(right)
        names = (*names, self.usual) if self.usual in right.keys() - set(names) else names
        if names:
            texts = {each.choice.name: each.choice.text for each in tried}
            with self.may_leave():
                found = measure({name: texts[name] for name in names})
            yield self._told(found)

    def _told(self, event: Event) -> Event:
        self.record(event)
        if self.asking is not None:
            self.asking.observe(event)
        return event

    def _asked(self, asking: ModelSession) -> Generator[Update, None, bool]:
        """Send the request that is due, and take an answer that is there; its kernels become options.

        Waits for an answer only if the model may take that long, or if there is nothing else to do. Returns whether
        there was one.
        """
        if self.question is None:
            task = asking.due(self.state, self._left())
            if task is None:
                return False
            yield Asks(asking.model, task.name)
            self.question, self._asked_at = asking.begin(self.state, task, self._left()), self.clock()
        idle, left = not self._flying and not self.state.open(), self._left()
        grace = max(0.0, self._asked_at + asking.grace - self.clock())
        patience = left if idle else grace if left is None else max(0.0, min(grace, left))
        with self.may_leave():
            found = self.question.answer(patience)
        if found is None:
            return False
        self.question = None
        event = asking.event(found)
        self.state = with_kernels_as_options(with_answer(self.state, event))
        yield self._told(event)
        return True

    def _next(self) -> tuple[Event, Choice] | None:
        """The planner's first choice, marked as pending; None if nothing is open."""
        ranked = self.planner.propose(self.state)
        if not ranked:
            return None
        first = ranked[0]
        techniques = tuple(str(step) for step in first.choice.steps)
        event = self._told(Proposed(first.choice.name, techniques, first.utility, self.planner.name, first.why))
        self.state = self.state.with_pending(first.choice.name)
        return event, first.choice

    def _submit(self, choice: Choice) -> None:
        self._flying.append((choice, self.evaluator.submit(choice.name, choice.text)))

    def _landed(self) -> Event | None:
        """Wait for the oldest pending candidate, even if others are ready: keeps the order deterministic.

        None if the time limit is reached first.
        """
        if not self._flying:
            return None
        choice, future = self._flying[0]
        with self.may_leave():
            judgement = self.evaluator.result(choice.name, future, self._left())
        if judgement is None:
            return None
        self._flying.popleft()
        self.settled = False
        event = self._told(Judged(judgement))
        self.state = self.planner.learn(self.state, observation(choice, judgement))
        return event

    def _room(self) -> bool:
        """Whether one more candidate may be submitted."""
        trials, begun = self.limits.trials, self._counted() + len(self._flying)
        return len(self._flying) < self.evaluator.workers and (trials is None or begun < trials)

    def _counted(self) -> int:
        """Candidates so far; a refused kernel does not count while it may be repaired."""
        waiting = 0 if self.asking is None else self.asking.uncounted(self.state)
        return len(self.state.situation.counted) - waiting

    def _left(self) -> float | None:
        """Remaining seconds of the time limit; None without one."""
        assert self.begun is not None
        return None if self.limits.seconds is None else self.begun + self.limits.seconds - self.clock()

    def _enough(self) -> Reason | None:
        """The limit that is reached; None to continue."""
        limits, tried, left = self.limits, self.state.situation.tried, self._left()
        if limits.trials is not None and self._counted() >= limits.trials:
            return "trials spent"
        if left is not None and left <= 0:
            return "time spent"
        return should_stop(limits.rule, [each.microseconds for each in tried], self.state.situation.bound)
