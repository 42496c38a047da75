"""A language model beside a search: when it is asked, what it is shown, and what becomes of its answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from attrs import define, field

from argus.core.pretty import pretty
from argus.llm import Client, ask
from argus.optimizer.events import Asked, Event, Judged
from argus.optimizer.judgement import Judgement
from argus.optimizer.problem import Problem
from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import Llm, due, refreshed
from argus.policy.llm.record import from_data, to_data
from argus.policy.llm.view import Rejection, View
from argus.policy.planner import State
from argus.policy.technique import Technique
from argus.rejections import rejection

_REMEMBERED = 8
"""Candidates that were stopped, whose reports are shown."""


@define
class Asking:
    """client: an open one. text: of a design, by its name. techniques: of the knowledge base."""

    client: Client
    planner: Llm
    text: Callable[[str], str]
    techniques: tuple[Technique, ...] = ()
    _stopped: deque[Rejection] = field(factory=lambda: deque[Rejection](maxlen=_REMEMBERED), init=False)

    def saw(self, event: Event) -> None:
        """What happened, also before a run was resumed."""
        if isinstance(event, Judged) and event.judgement.microseconds is None:
            self._stopped.append(_rejection(event.judgement))

    def asked(self, state: State[Memory]) -> Asked | None:
        """What the model says now, as an event to record and to pass to `answered`; None where it is not its turn."""
        settings = self.client.settings
        if not due(state, settings.every):
            return None
        best = state.situation.best
        kernel = "" if best is None else self.text(best.choice.name)
        found = ask(self.client, self.planner, state, View(kernel, tuple(self._stopped), self.techniques))
        return Asked(settings.model, to_data(found), found.spent.tokens, found.spent.dollars)


def answered(state: State[Memory], event: Asked) -> State[Memory]:
    """The state after an answer, as it comes or from a journal. Raises ArgusError (E928)."""
    return refreshed(state, from_data(event.reply))


def text_of(problem: Problem, name: str) -> str:
    """The kernel of a design, as statements. Raises ArgusError (E903)."""
    return pretty(problem.kernel(name))


def _rejection(found: Judgement) -> Rejection:
    data: dict[str, object] = {"stage": found.stage, "why": found.why, "counterexample": found.counterexample}
    return rejection(found.name, found.outcome, data)
