"""Memory of the language-model planner: textual lessons and feedback, the current answer, the cost so far.

After each observation, one sentence states the expectation and the result; the model reads these sentences and
rewrites its lessons, so that textual feedback improves a textual policy [Yuksekgonul 2024, section 3]. Both lists are
bounded.
"""

from __future__ import annotations

from attrs import evolve, frozen

from argus.policy.bandit import Posteriors
from argus.policy.llm.budget import NOTHING, Spent
from argus.policy.llm.record import Response
from argus.policy.llm.reply import Kernel, Knobs, Option, Proposal, Reply, Trouble, Use
from argus.policy.llm.texts import printable_line
from argus.policy.planner import Choice, Observation, Situation

MOST_FEEDBACK = 24
FEEDBACK = 360
"""Most characters of one sentence of feedback."""


@frozen
class Memory:
    """beliefs: posteriors of the bandit, which ranks the choices that the model does not propose.

    reply: the current answer; trouble: why there is none; failures: consecutive failed questions. answered: number of
    observations at the last question. lessons: written by the model; feedback: written by us, one sentence per
    observation, latest last.
    """

    beliefs: Posteriors
    reply: Reply | None = None
    trouble: Trouble | None = None
    failures: int = 0
    answered: int = 0
    lessons: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    spent: Spent = NOTHING

    def with_feedback(self, beliefs: Posteriors, line: str) -> Memory:
        """The memory after one more observation."""
        return evolve(self, beliefs=beliefs, feedback=(*self.feedback, line)[-MOST_FEEDBACK:])

    def with_response(self, asked: Response, step: int) -> Memory:
        """The memory after a response. An answer without lessons keeps the present ones."""
        spent = self.spent + asked.spent
        match asked:
            case Reply(lessons=lessons):
                kept = lessons or self.lessons
                return evolve(self, reply=asked, trouble=None, failures=0, answered=step, lessons=kept, spent=spent)
            case Trouble():
                failures = self.failures + 1
                return evolve(self, reply=None, trouble=asked, failures=failures, answered=step, spent=spent)


def matches(proposal: Proposal, choice: Choice) -> bool:
    """Whether a choice matches the proposal's target."""
    match proposal.target:
        case Option(name=name):
            return choice.name == name
        case Use(technique=technique):
            has = {step.technique for step in choice.steps}
            return technique in has and has.issuperset(proposal.needs)
        case Knobs() as knobs:
            return knobs.fit(choice)
        case Kernel() as kernel:
            return choice.name == kernel.name


def feedback(situation: Situation, observation: Observation, reply: Reply | None) -> str:
    """One sentence on an observation. situation: before the observation."""
    choice = observation.choice
    said = next((each for each in (reply.proposals if reply else ()) if matches(each, choice)), None)
    expected = f", expected with confidence {said.confidence:.2f}: {said.reason}" if said else ""
    steps = ", ".join(map(str, choice.steps)) or "the first design"
    return printable_line(f"{choice.name} ({steps}) {_outcome(situation, observation)}{expected}", FEEDBACK)


def _outcome(situation: Situation, observation: Observation) -> str:
    found, best = observation.microseconds, situation.best
    if found is None:
        return f"was stopped: {observation.outcome}"
    if best is None or best.microseconds is None:
        return f"took {found:.4g} us, the first that passed"
    ratio = best.microseconds / found
    return f"took {found:.4g} us, {ratio:.3f} times as fast as the best before"
