"""A language model beside a search: when it is asked, what it is shown, and what becomes of its answer."""

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
from argus.policy.planner import State
from argus.policy.technique import Technique
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Event, Judged
from argus.search.llm_client import Client, ask
from argus.search.problems.problem import Problem
from argus.verifier.rejections import rejection

_REMEMBERED = 8
"""Candidates that were stopped, whose reports are shown."""
_SHORTEST = 5.0
"""Seconds of a search in which a question that is paid for may still lead to a candidate."""


@define
class ModelSession:
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

    @property
    def model(self) -> str:
        return self.client.settings.model

    def should_ask(self, state: State[Memory], left: float | None = None) -> bool:
        """Whether it is the model's turn, and its answer could still be of use. left: seconds of the search."""
        return (left is None or left >= _SHORTEST) and should_ask(state, self.client.settings.every)

    def asked(self, state: State[Memory], left: float | None = None) -> Asked:
        """What the model says now, as an event to record and to pass to `answered`.

        left: seconds that the search still has; no answer is waited for beyond them. Raises Interrupted.
        """
        best = state.situation.best
        kernel = "" if best is None else self.text(best.choice.name)
        client = self.client if left is None else _with_less_patience(self.client, left)
        found = ask(client, self.planner, state, View(kernel, tuple(self._stopped), self.techniques))
        return self._event(found)

    def broken_off(self, spent: Spent) -> Asked:
        """What is recorded of a question that was interrupted: what it may have cost counts."""
        advice = "go on with --resume, which asks again"
        return self._event(Trouble("E923", "the question was interrupted", advice, lasting=False, spent=spent))

    def _event(self, found: Reply | Trouble) -> Asked:
        return Asked(self.model, to_data(found), found.spent.tokens, found.spent.dollars)


def _with_less_patience(client: Client, left: float) -> Client:
    settings = client.settings
    return evolve(client, settings=evolve(settings, patience=min(settings.patience, max(left, _SHORTEST))))


def with_answer(state: State[Memory], event: Asked) -> State[Memory]:
    """The state after an answer, as it comes or from a journal. Raises ArgusError (E928)."""
    return with_response(state, from_data(event.reply))


def kernel_text(problem: Problem, name: str) -> str:
    """The kernel of a design, as statements. Raises ArgusError (E903)."""
    return pretty(problem.kernel(name))


def _rejection(found: Judgement) -> Rejection:
    data: dict[str, object] = {"stage": found.stage, "why": found.why, "counterexample": found.counterexample}
    return rejection(found.name, found.outcome, data)
