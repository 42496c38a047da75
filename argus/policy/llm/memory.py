"""What a planner that asks a model remembers: lessons in words, its last answer, what was spent.

The lessons are its policy. After each observation one sentence says what was expected and what came of it; the model
reads these sentences and writes its lessons anew, so that a policy in words is improved by feedback in words
[Yuksekgonul 2024, section 3]. Both lists are bounded.
"""

from __future__ import annotations

from attrs import evolve, frozen

from argus.policy.bandit import Beliefs
from argus.policy.llm.budget import NOTHING, Spent
from argus.policy.llm.record import Asked
from argus.policy.llm.reply import Kernel, Knobs, Option, Proposal, Reply, Trouble, Use
from argus.policy.llm.texts import sentence
from argus.policy.planner import Choice, Observation, Situation

MOST_FEEDBACK = 24
FEEDBACK = 360
"""Characters of one sentence."""


@frozen
class Memory:
    """beliefs: of the bandit, which ranks what the model does not speak of.

    reply: in force; trouble: why there is none, and failures: how many questions in a row met some. answered:
    observations that there were when the model was last asked. lessons: in the model's words; feedback: in ours, one
    sentence an observation, the latest last.
    """

    beliefs: Beliefs
    reply: Reply | None = None
    trouble: Trouble | None = None
    failures: int = 0
    answered: int = 0
    lessons: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    spent: Spent = NOTHING

    def after(self, beliefs: Beliefs, line: str) -> Memory:
        """With one more observation."""
        return evolve(self, beliefs=beliefs, feedback=(*self.feedback, line)[-MOST_FEEDBACK:])

    def told(self, asked: Asked, step: int) -> Memory:
        """With one more answer, or why there is none. An answer without lessons leaves those that there are."""
        spent = self.spent + asked.spent
        match asked:
            case Reply(lessons=lessons):
                kept = lessons or self.lessons
                return evolve(self, reply=asked, trouble=None, failures=0, answered=step, lessons=kept, spent=spent)
            case Trouble():
                failures = self.failures + 1
                return evolve(self, reply=None, trouble=asked, failures=failures, answered=step, spent=spent)


def speaks_of(proposal: Proposal, choice: Choice) -> bool:
    """Whether a choice is what was proposed."""
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
    """One sentence on an observation, before the situation knows of it."""
    choice = observation.choice
    said = next((each for each in (reply.proposals if reply else ()) if speaks_of(each, choice)), None)
    expected = f", expected with confidence {said.confidence:.2f}: {said.reason}" if said else ""
    steps = ", ".join(map(str, choice.steps)) or "the first design"
    return sentence(f"{choice.name} ({steps}) {_outcome(situation, observation)}{expected}", FEEDBACK)


def _outcome(situation: Situation, observation: Observation) -> str:
    found, best = observation.microseconds, situation.best
    if found is None:
        return f"was stopped: {observation.outcome}"
    if best is None or best.microseconds is None:
        return f"took {found:.4g} us, the first that passed"
    ratio = best.microseconds / found
    return f"took {found:.4g} us, {ratio:.3f} times as fast as the best before"
