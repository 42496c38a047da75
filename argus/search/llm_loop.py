"""Connects a language model to the search loop: which request is due, what it shows, and how its answer is recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from attrs import define, evolve, field

from argus.policy.llm.memory import Memory
from argus.policy.llm.planner import Llm, with_response
from argus.policy.llm.record import Response, from_data, to_data
from argus.policy.llm.reply import Trouble
from argus.policy.llm.roles import Roles
from argus.policy.llm.tasks import Plan, Task, awaiting_repair, next_task
from argus.policy.llm.view import Rejection, Shown, View
from argus.policy.planner import Choice, Observation, State
from argus.policy.technique import Technique
from argus.search.asking import PendingQuestion
from argus.search.evaluation.judgement import Judgement
from argus.search.events import Asked, Event, Judged
from argus.search.llm_client import ROLES, Client, Meter, ask
from argus.verifier.rejections import rejection

_REMEMBERED = 8
"""Number of rejected candidates whose reports are shown."""
_SHORTEST = 5.0
"""Least remaining seconds of a search for a paid question to be worthwhile."""


@define
class ModelSession:
    """A model session. client: open. text: of a choice's kernel. techniques: of the knowledge base.

    about: what is shown of the problem in every request. roles: the request types.
    """

    client: Client
    planner: Llm
    text: Callable[[Choice], str]
    techniques: tuple[Technique, ...] = ()
    about: View = View()  # noqa: RUF009 reason: frozen
    roles: Roles = field(default=ROLES)
    _stopped: deque[Judgement] = field(factory=lambda: deque[Judgement](maxlen=_REMEMBERED), init=False)
    _passed: dict[str, Judgement] = field(factory=dict[str, Judgement], init=False)

    def observe(self, event: Event) -> None:
        """Record an event, also when replaying a resumed run."""
        if isinstance(event, Judged):
            if event.judgement.microseconds is None:
                self._stopped.append(event.judgement)
            else:
                self._passed[event.judgement.name] = event.judgement

    @property
    def model(self) -> str:
        return self.client.settings.model

    @property
    def grace(self) -> float:
        """Seconds that a free worker waits for an answer."""
        return self.client.settings.grace

    def due(self, state: State[Memory], left: float | None = None) -> Task | None:
        """The request to send now. left: remaining seconds of the search."""
        if left is not None and left < _SHORTEST:
            return None
        settings = self.client.settings
        return next_task(state, settings.every, settings.rounds)

    def should_ask(self, state: State[Memory], left: float | None = None) -> bool:
        """Whether a request is due."""
        return self.due(state, left) is not None

    def uncounted(self, state: State[Memory]) -> int:
        """Number of refused kernels that still get a repair, and do not count as candidates until then."""
        trouble = state.memory.trouble
        lasting = trouble is not None and trouble.lasting
        return 0 if lasting else len(awaiting_repair(state, self.client.settings.rounds))

    def begin(self, state: State[Memory], task: Task, left: float | None = None) -> PendingQuestion:
        """Send a request in a thread of its own. left: remaining seconds of the search, the question's timeout."""
        client = self.client if left is None else _with_less_patience(self.client, left)
        view = self.view(state)

        def send(meter: Meter) -> Response:
            return ask(client, self.planner, state, view, task, self.roles, meter)

        return PendingQuestion(task, send).start()

    def ask(self, state: State[Memory], left: float | None = None) -> Asked:
        """Send the request that is due and wait for its answer; returns the event to record."""
        found = self.begin(state, self.due(state, left) or Plan(), left).answer(None)
        assert found is not None
        return self.event(found)

    def view(self, state: State[Memory]) -> View:
        """What a request shows besides the planner's state."""
        situation = state.situation
        last = situation.tried[-1] if situation.tried else None
        texts = {each.choice.name: each.choice.text for each in situation.tried}
        stopped = tuple(_rejection(each, texts.get(each.name, "")) for each in self._stopped)
        best, latest = self._shown(situation.best), self._shown(last)
        return evolve(self.about, best=best, last=latest, rejections=stopped, techniques=self.techniques)

    def _shown(self, found: Observation | None) -> Shown | None:
        if found is None:
            return None
        seen = self._passed.get(found.choice.name, Judgement(found.choice.name, found.outcome, "parse"))
        how = found.outcome if found.microseconds is None else f"passed, {found.microseconds:.4g} us"
        text = self.text(found.choice)
        return Shown(found.choice.name, text, how, seen.resources, seen.breakdown, seen.limiting)

    def abandoned(self, question: PendingQuestion) -> Asked:
        """The event of a question whose answer is not waited for, with its worst-case cost."""
        advice = "continue with --resume, which asks again"
        message = "the search ended before the answer"
        spent = question.abandon()
        # Not about a plan or a kernel, so that a resumed run asks about it again.
        return self.event(Trouble("E923", message, advice, lasting=False, spent=spent, task=question.task.name))

    def event(self, found: Response) -> Asked:
        """The event of a response."""
        return Asked(self.model, to_data(found), found.spent.tokens, found.spent.dollars)


def _with_less_patience(client: Client, left: float) -> Client:
    settings = client.settings
    return evolve(client, settings=evolve(settings, patience=min(settings.patience, max(left, _SHORTEST))))


def with_answer(state: State[Memory], event: Asked) -> State[Memory]:
    """The state after an answer, live or replayed from a journal. Raises ArgusError (E928)."""
    return with_response(state, from_data(event.reply))


def _rejection(found: Judgement, text: str) -> Rejection:
    data: dict[str, object] = {"stage": found.stage, "why": found.why, "counterexample": found.counterexample}
    return evolve(rejection(found.name, found.outcome, data), text=text, diagnostics=found.diagnostics)
