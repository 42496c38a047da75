"""Memory of the language-model planner: textual lessons and feedback, the current answer, the cost so far.

After each observation, one sentence states the result and the expectation; the model reads these sentences and
rewrites its lessons, so that textual feedback improves a textual policy [Yuksekgonul 2024, section 3]. Both lists are
bounded.
"""

from __future__ import annotations

from attrs import evolve, frozen

from argus.policy.bandit import Posteriors
from argus.policy.llm.budget import NOTHING, Spent
from argus.policy.llm.record import Response
from argus.policy.llm.reply import Kernel, Knobs, Option, Proposal, Reply, Trouble, Use, Write
from argus.policy.llm.texts import printable_line
from argus.policy.partial_reward import partial_reward
from argus.policy.planner import Choice, Observation, Situation

MOST_FEEDBACK = 24
FEEDBACK = 360
"""Most characters of one sentence of feedback."""
MOST_LESSONS = 12
_WHY = 140


@frozen
class Memory:
    """beliefs: posteriors of the bandit, which ranks the choices that the model does not propose.

    reply: the current answer; trouble: why there is none; failures: consecutive failed questions. answered: number of
    observations at the last plan or failure. lessons: written by the model; feedback: written by us, one sentence per
    observation, latest last. given_up: names of plans and refused kernels about which a question failed.
    """

    beliefs: Posteriors
    reply: Reply | None = None
    trouble: Trouble | None = None
    failures: int = 0
    answered: int = 0
    lessons: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    spent: Spent = NOTHING
    given_up: frozenset[str] = frozenset()

    def with_feedback(self, beliefs: Posteriors, line: str) -> Memory:
        """The memory after one more observation."""
        return evolve(self, beliefs=beliefs, feedback=(*self.feedback, line)[-MOST_FEEDBACK:])

    def with_response(self, asked: Response, step: int) -> Memory:
        """The memory after a response. An answer without lessons keeps the present ones."""
        known = evolve(self, spent=self.spent + asked.spent)
        match asked:
            case Reply(task="plan"):
                kept = asked.lessons or self.lessons
                return evolve(known, reply=asked, trouble=None, failures=0, answered=step, lessons=kept)
            case Reply():
                return known._with_kernel(asked)
            case Trouble():
                reply = None if asked.task == "plan" else self.reply
                failed = evolve(known, reply=reply, trouble=asked, failures=self.failures + 1, answered=step)
                return evolve(failed, given_up=self.given_up | {asked.about}) if asked.about else failed

    def _with_kernel(self, asked: Reply) -> Memory:
        """A written kernel joins the proposals of the current plan, and its lesson the others."""
        now = Reply(asked.proposals) if self.reply is None else self.reply
        joined = now if self.reply is None else evolve(now, proposals=(*asked.proposals, *now.proposals))
        lessons = tuple(dict.fromkeys((*self.lessons, *asked.lessons)))[-MOST_LESSONS:]
        return evolve(self, reply=joined, trouble=None, failures=0, lessons=lessons)


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
        case Write():
            return False


def feedback(situation: Situation, observation: Observation, reply: Reply | None) -> str:
    """One sentence on an observation, its outcome first. situation: before the observation."""
    choice = observation.choice
    said = next((each for each in (reply.proposals if reply else ()) if matches(each, choice)), None)
    expected = f"; expected with confidence {said.confidence:.2f}: {said.reason}" if said else ""
    repaired = f", which repairs {choice.repairs}" if choice.repairs else ""
    steps = ", ".join(map(str, choice.steps)) or "the first design"
    return printable_line(f"{_outcome(situation, observation)}: {choice.name} ({steps}){repaired}{expected}", FEEDBACK)


def _outcome(situation: Situation, observation: Observation) -> str:
    found, best = observation.microseconds, situation.best
    reward = f"reward {partial_reward(observation, situation.bound):.2f}"
    if found is None:
        stage = f" at {observation.stage}" if observation.stage else ""
        why = f", {printable_line(observation.why, _WHY)}" if observation.why else ""
        return f"{observation.outcome}{stage}, {reward}{why}"
    if best is None or best.microseconds is None:
        return f"passed, {found:.4g} us, {reward}, the first that passed"
    ratio = best.microseconds / found
    return f"passed, {found:.4g} us, {reward}, {ratio:.3f} times as fast as the best before"
