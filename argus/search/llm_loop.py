"""Connects a language model to the search loop: when to ask it, what to show it, and how to record its answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from attrs import define, evolve, field

from argus.core.ir.pretty import pretty
from argus.policy.llm.budget import Spent
from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import Llm, should_ask, with_response
from argus.policy.llm.record import from_data, to_data
from argus.policy.llm.reply import Reply, Trouble
from argus.policy.llm.view import Rejection, View
from argus.policy.planner import Choice, State
from argus.policy.technique import Technique
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Event, Judged
from argus.search.llm_client import Client, ask
from argus.search.problems.problem import Problem
from argus.verifier.rejections import rejection

_REMEMBERED = 8
"""Number of rejected candidates whose reports are shown."""
_SHORTEST = 5.0
"""Least remaining seconds of a search for a paid question to be worthwhile."""


@define
class ModelSession:
    """A model session. client: open. text: of a choice's kernel. techniques: of the knowledge base."""

    client: Client
    planner: Llm
    text: Callable[[Choice], str]
    techniques: tuple[Technique, ...] = ()
    _stopped: deque[Rejection] = field(factory=lambda: deque[Rejection](maxlen=_REMEMBERED), init=False)

    def observe(self, event: Event) -> None:
        """Record an event, also when replaying a resumed run."""
        if isinstance(event, Judged) and event.judgement.microseconds is None:
            self._stopped.append(_rejection(event.judgement))

    @property
    def model(self) -> str:
        return self.client.settings.model

    def should_ask(self, state: State[Memory], left: float | None = None) -> bool:
        """Whether to ask the model now. left: remaining seconds of the search."""
        return (left is None or left >= _SHORTEST) and should_ask(state, self.client.settings.every)

    def ask(self, state: State[Memory], left: float | None = None) -> Asked:
        """Ask the model; returns the event to record and to pass to `with_answer`.

        left: remaining seconds of the search, the timeout of the question. Raises Interrupted.
        """
        best = state.situation.best
        kernel = "" if best is None else self.text(best.choice)
        client = self.client if left is None else _with_less_patience(self.client, left)
        found = ask(client, self.planner, state, View(kernel, tuple(self._stopped), self.techniques))
        return self._event(found)

    def interrupted(self, spent: Spent) -> Asked:
        """The event of an interrupted question, with its worst-case cost."""
        advice = "continue with --resume, which asks again"
        return self._event(Trouble("E923", "the question was interrupted", advice, lasting=False, spent=spent))

    def _event(self, found: Reply | Trouble) -> Asked:
        return Asked(self.model, to_data(found), found.spent.tokens, found.spent.dollars)


def _with_less_patience(client: Client, left: float) -> Client:
    settings = client.settings
    return evolve(client, settings=evolve(settings, patience=min(settings.patience, max(left, _SHORTEST))))


def with_answer(state: State[Memory], event: Asked) -> State[Memory]:
    """The state after an answer, live or replayed from a journal. Raises ArgusError (E928)."""
    return with_response(state, from_data(event.reply))


def kernel_text(problem: Problem, choice: Choice) -> str:
    """The source of a written kernel, which no design has as its name; else the pretty-printed IR of the design.

    Raises ArgusError (E903) for the name of no design.
    """
    return choice.text or pretty(problem.kernel(choice.name))


def _rejection(found: Judgement) -> Rejection:
    data: dict[str, object] = {"stage": found.stage, "why": found.why, "counterexample": found.counterexample}
    return rejection(found.name, found.outcome, data)
