"""The search itself: a planner proposes, the gate judges, the journal keeps, until a rule says that it is enough.

A run's state is what its events make of it. To resume one, they are read again: candidates that were under way go to
the gate once more, in their order, and the planner goes on as it would have gone on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from attrs import define, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.policy.llm.planner import with_kernels_as_options
from argus.policy.planner import Choice, Observation, Planner, Situation, State
from argus.policy.stopping import Rule, should_stop
from argus.search.evaluation.evaluators import Evaluator
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Asks, Ended, Event, Judged, Proposed, Reason, Resumed, Started, Update
from argus.search.journal import Journal
from argus.search.llm_client import Interrupted
from argus.search.llm_loop import ModelSession, with_answer


@frozen
class Limits:
    """When to stop: what is reached first. seconds: of this process; None: no such limit."""

    seconds: float | None = None
    trials: int | None = None
    rule: Rule = field(factory=Rule)


@frozen
class ReplayedRun:
    """What the events of a run amount to. under_way: names of choices that were at the gate, in order."""

    state: State[Any]
    under_way: tuple[str, ...]


def replay_events(events: Sequence[Event], planner: Planner, situation: Situation, seed: int) -> ReplayedRun:
    """Raises ArgusError (E904) if an event speaks of a choice that there is not, or answers one not under way."""
    state = planner.start(situation, seed)
    waiting: list[str] = []
    for event in events:
        match event:
            case Proposed(name):
                state = state.with_pending(_open_choice(state, name).name)
                waiting.append(name)
            case Judged(judgement):
                if judgement.name not in waiting:
                    raise _damaged(f"an answer to `{judgement.name}`, which it did not propose")
                waiting.remove(judgement.name)
                state = planner.learn(state, observation(_open_choice(state, judgement.name), judgement))
            case Asked():
                state = with_kernels_as_options(with_answer(state, event))
            case Started() | Resumed() | Ended():
                pass
    return ReplayedRun(state, tuple(waiting))


def _open_choice(state: State[Any], name: str) -> Choice:
    found = next((each for each in state.situation.options if each.name == name), None)
    if found is None:
        raise _damaged(f"`{name}`, which is no design of this problem that is open")
    return found


def _damaged(what: str) -> ArgusError:
    """Of a journal that no search of this version can have written."""
    message = f"the run cannot go on: its journal speaks of {what}"
    advice = (
        "go on with the version of Argus that began it, which `argus optimize --runs --json` tells, or begin a new run"
    )
    return ArgusError(Diagnostic("E904", "error", message, help=advice))


def observation(choice: Choice, judgement: Judgement) -> Observation:
    return Observation(choice, judgement.outcome, judgement.microseconds)


@define
class Search:
    """A run that is under way.

    asking: of a model beside it, if one is asked. may_leave: holds where an interrupt may be raised. clock: seconds,
    for the limits; begun: what it showed when the time of the search began, if that was before `go`.
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
    _flying: deque[tuple[Choice, Future[Judgement]]] = field(factory=deque[tuple[Choice, "Future[Judgement]"]])

    def go(self, under_way: Sequence[str] = ()) -> Iterator[Update]:
        """Events as they happen, each recorded before it is told; the last one is `Ended`.

        What is under way when the time is spent is given up, and no answer of it recorded.
        """
        self.begun = self.clock() if self.begun is None else self.begun
        reason: Reason = "interrupted"
        try:
            for name in under_way:
                self._submit(_open_choice(self.state, name))
            while True:
                ended = self._enough()
                while ended is None and self._room():
                    if self.asking is not None and self.asking.should_ask(self.state, self._left()):
                        yield Asks(self.asking.model)
                        event, broken = self._asked(self.asking)
                        yield event
                        ended = "interrupted" if broken else self._enough()
                        continue
                    proposed = self._next()
                    if proposed is None:
                        break
                    event, choice = proposed
                    yield event  # told before it is judged, which may take long
                    self._submit(choice)
                if ended is not None or not self._flying:
                    reason = ended or "nothing left"
                    break
                landed = self._landed()
                if landed is not None:
                    yield landed
        except KeyboardInterrupt:
            reason = "interrupted"
        finally:
            self.evaluator.close()
        yield self._told(Ended(reason))

    def _told(self, event: Event) -> Event:
        self.record(event)
        if self.asking is not None:
            self.asking.saw(event)
        return event

    def _asked(self, asking: ModelSession) -> tuple[Event, bool]:
        """What a model says, and whether it was interrupted; kernels that it wrote are options from then on."""
        broken = False
        try:
            with self.may_leave():
                event = asking.asked(self.state, self._left())
        except Interrupted as problem:
            event, broken = asking.broken_off(problem.spent), True
        self.state = with_kernels_as_options(with_answer(self.state, event))
        return self._told(event), broken

    def _next(self) -> tuple[Event, Choice] | None:
        """What the planner wants most; it counts as under way from here on."""
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
        """The candidate that has been under way for longest: its answer comes first, whatever else is ready.

        None where the time is spent before.
        """
        choice, future = self._flying[0]
        with self.may_leave():
            judgement = self.evaluator.result(choice.name, future, self._left())
        if judgement is None:
            return None
        self._flying.popleft()
        event = self._told(Judged(judgement))
        self.state = self.planner.learn(self.state, observation(choice, judgement))
        return event

    def _room(self) -> bool:
        """Whether one more candidate may go to the gate."""
        trials, begun = self.limits.trials, len(self.state.situation.tried) + len(self._flying)
        return len(self._flying) < self.evaluator.workers and (trials is None or begun < trials)

    def _left(self) -> float | None:
        """Seconds of the budget; None where there is none."""
        assert self.begun is not None
        return None if self.limits.seconds is None else self.begun + self.limits.seconds - self.clock()

    def _enough(self) -> Reason | None:
        limits, tried, left = self.limits, self.state.situation.tried, self._left()
        if limits.trials is not None and len(tried) >= limits.trials:
            return "trials spent"
        if left is not None and left <= 0:
            return "time spent"
        return should_stop(limits.rule, [each.microseconds for each in tried], self.state.situation.bound)


def start_run(journal: Journal, first: Started) -> tuple[str, Callable[[Event], None]]:
    """A new run, and what records its events."""
    name = journal.begin(first)
    return name, lambda event: journal.append(name, event)
