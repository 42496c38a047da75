"""The search itself: a planner proposes, the gate judges, the journal keeps, until a rule says that it is enough.

A run's state is what its events make of it. To resume one, they are read again: candidates that were under way go to
the gate once more, in their order, and the planner goes on as it would have gone on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from attrs import define, field, frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.optimizer.asking import Asking, answered
from argus.optimizer.evaluators import Evaluator
from argus.optimizer.events import Asked, Ended, Event, Judged, Proposed, Reason, Resumed, Started
from argus.optimizer.interrupts import Interrupts
from argus.optimizer.journal import Journal
from argus.optimizer.judgement import Judgement
from argus.policy.llm.planner import offered
from argus.policy.planner import Choice, Observation, Planner, Situation, State
from argus.policy.stopping import Rule, stop


@frozen
class Limits:
    """When to stop: what is reached first. seconds: of this process; None: no such limit."""

    seconds: float | None = None
    trials: int | None = None
    rule: Rule = field(factory=Rule)


@frozen
class Past:
    """What the events of a run amount to. under_way: names of choices that were at the gate, in order."""

    state: State[Any]
    under_way: tuple[str, ...]


def past(events: Sequence[Event], planner: Planner, situation: Situation, seed: int) -> Past:
    """Raises ArgusError (E904) if an event speaks of a choice that there is not, or answers one not under way."""
    state = planner.start(situation, seed)
    waiting: list[str] = []
    for event in events:
        match event:
            case Proposed(name):
                state = state.started(_known(state, name).name)
                waiting.append(name)
            case Judged(judgement):
                if judgement.name not in waiting:
                    raise _damaged(f"an answer to `{judgement.name}`, which it did not propose")
                waiting.remove(judgement.name)
                state = planner.learn(state, observation(_known(state, judgement.name), judgement))
            case Asked():
                state = offered(answered(state, event))
            case Started() | Resumed() | Ended():
                pass
    return Past(state, tuple(waiting))


def _known(state: State[Any], name: str) -> Choice:
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
    """A run that is under way. asking: of a model beside it, if one is asked. clock: seconds, for the limits.

    interrupts: what ends it from outside.
    """

    planner: Planner
    evaluator: Evaluator
    limits: Limits
    state: State[Any]
    record: Callable[[Event], None]
    asking: Asking | None = None
    clock: Callable[[], float] = time.monotonic
    interrupts: Interrupts = field(factory=Interrupts)
    _flying: deque[tuple[Choice, Future[Judgement]]] = field(factory=deque[tuple[Choice, "Future[Judgement]"]])

    def go(self, under_way: Sequence[str] = ()) -> Iterator[Event]:
        """Events as they happen, each recorded before it is told; the last one is `Ended`."""
        begun = self.clock()
        reason: Reason = "interrupted"
        try:
            for name in under_way:
                self._submit(_known(self.state, name))
            while True:
                ended = self._enough(begun)
                while ended is None and self._room():
                    asked = self._asked()
                    if asked is not None:
                        yield asked
                    proposed = self._next()
                    if proposed is None:
                        break
                    event, choice = proposed
                    yield event  # told before it is judged, which may take long
                    self._submit(choice)
                if ended is not None or not self._flying:
                    reason = ended or "nothing left"
                    break
                yield self._landed()
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

    def _asked(self) -> Event | None:
        """What a model says, where one is asked and it is its turn; kernels that it wrote are options from then on."""
        if self.asking is None:
            return None
        with self.interrupts.waiting():
            event = self.asking.asked(self.state)
        if event is not None:
            self.state = offered(answered(self.state, event))
            self._told(event)
        return event

    def _next(self) -> tuple[Event, Choice] | None:
        """What the planner wants most; it counts as under way from here on."""
        ranked = self.planner.propose(self.state)
        if not ranked:
            return None
        first = ranked[0]
        techniques = tuple(str(step) for step in first.choice.steps)
        event = self._told(Proposed(first.choice.name, techniques, first.utility, self.planner.name, first.why))
        self.state = self.state.started(first.choice.name)
        return event, first.choice

    def _submit(self, choice: Choice) -> None:
        with self.interrupts.waiting():
            self._flying.append((choice, self.evaluator.submit(choice.name, choice.text)))

    def _landed(self) -> Event:
        """The candidate that has been under way for longest: its answer comes first, whatever else is ready."""
        choice, future = self._flying[0]
        with self.interrupts.waiting():
            judgement = self.evaluator.result(choice.name, future)
        self._flying.popleft()
        event = self._told(Judged(judgement))
        self.state = self.planner.learn(self.state, observation(choice, judgement))
        return event

    def _room(self) -> bool:
        """Whether one more candidate may go to the gate."""
        trials, begun = self.limits.trials, len(self.state.situation.tried) + len(self._flying)
        return len(self._flying) < self.evaluator.workers and (trials is None or begun < trials)

    def _enough(self, begun: float) -> Reason | None:
        limits, tried = self.limits, self.state.situation.tried
        if self.interrupts.asked:
            return "interrupted"
        if limits.trials is not None and len(tried) >= limits.trials:
            return "trials spent"
        if limits.seconds is not None and self.clock() - begun >= limits.seconds:
            return "time spent"
        return stop(limits.rule, [each.microseconds for each in tried], self.state.situation.bound)


def started(journal: Journal, first: Started) -> tuple[str, Callable[[Event], None]]:
    """A new run, and what records its events."""
    name = journal.begin(first)
    return name, lambda event: journal.append(name, event)
