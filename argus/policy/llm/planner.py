"""A planner that ranks by what a model answered; without an answer, and for what it leaves open, by the bandit.

Asking is an effect and is done elsewhere (`argus.search.llm_client`). A loop asks when `due` says so, records the
answer, and goes on from `refreshed(state, answer)`; an answer read from a record leads to the same state as when it
came.
"""

from __future__ import annotations

from math import log

import numpy as np
from attrs import evolve, field, frozen

from argus.policy.bandit import Bandit, Beliefs
from argus.policy.llm.memory import Memory, feedback, speaks_of
from argus.policy.llm.record import Asked
from argus.policy.llm.reply import Kernel, Proposal, Reply
from argus.policy.planner import Choice, Observation, Ranked, Situation, State, Step

_LEAST = 1e-3
"""What a confidence counts for at least, where ranks are drawn."""
KERNEL_TEXT = "kernel-text"


@frozen
class Llm:
    """bandit: what ranks in its place. spread: 0 ranks by confidence; above, ranks are drawn in proportion to it."""

    bandit: Bandit = field(factory=lambda: Bandit({}))
    name: str = "llm"
    spread: float = 0.0

    def start(self, situation: Situation, seed: int) -> State[Memory]:
        return State(seed, situation, Memory(self.bandit.start(situation, seed).memory))

    def propose(self, state: State[Memory]) -> tuple[Ranked, ...]:
        """The model's proposals among the open choices, then the others as the bandit ranks them."""
        rest = self.standing(state)
        meant = _matched(self._order(state), tuple(each.choice for each in rest))
        names = {choice.name for choice, _ in meant}
        why = _fallback(state.memory)
        told = [(choice, _why(proposal)) for choice, proposal in meant]
        others = [(each.choice, why) for each in rest if each.choice.name not in names]
        ordered = (*told, *others)
        return tuple(Ranked(choice, float(len(ordered) - place), why) for place, (choice, why) in enumerate(ordered))

    def standing(self, state: State[Memory]) -> tuple[Ranked, ...]:
        """How the bandit alone ranks the open choices."""
        return self.bandit.propose(_plain(state))

    def learn(self, state: State[Memory], observation: Observation) -> State[Memory]:
        beliefs = self.bandit.learn(_plain(state), observation).memory
        line = feedback(state.situation, observation, state.memory.reply)
        return state.observed(observation, state.memory.after(beliefs, line))

    def _order(self, state: State[Memory]) -> tuple[Proposal, ...]:
        """Proposals that can be followed first; within each kind by confidence, or drawn without replacement.

        Noise of Gumbel's distribution on logarithms of weights draws in proportion to the weights [Kool 2019, 2].
        """
        reply = state.memory.reply
        if reply is None:
            return ()
        noise = state.generator().gumbel(size=len(reply.proposals)) * self.spread
        scores = [log(max(each.confidence, _LEAST)) for each in reply.proposals]
        by_score = np.argsort(-(np.array(scores) + noise), kind="stable")
        proposals = tuple(reply.proposals[int(place)] for place in by_score)
        return tuple(sorted(proposals, key=lambda each: not _ready(each, state.situation)))


def _plain(state: State[Memory]) -> State[Beliefs]:
    """The state as the bandit knows it."""
    return State(state.seed, state.situation, state.memory.beliefs, state.pending)


def _ready(proposal: Proposal, situation: Situation) -> bool:
    """Whether each technique that it builds on is in the design that it names, or in one that passed."""
    own = next((each for each in situation.options if speaks_of(proposal, each)), None)
    designs = [*(each.choice for each in situation.tried if each.passed), *([own] if own else [])]
    return {step.technique for each in designs for step in each.steps}.issuperset(proposal.needs)


def _matched(proposals: tuple[Proposal, ...], choices: tuple[Choice, ...]) -> list[tuple[Choice, Proposal]]:
    """Of each proposal the first choice that is meant and that no earlier one has taken."""
    taken: dict[str, tuple[Choice, Proposal]] = {}
    for proposal in proposals:
        found = next((each for each in choices if each.name not in taken and speaks_of(proposal, each)), None)
        if found is not None:
            taken[found.name] = (found, proposal)
    return list(taken.values())


def _why(proposal: Proposal) -> str:
    return f"model, confidence {proposal.confidence:.2f}: {proposal.reason}"


def _fallback(memory: Memory) -> str:
    if memory.reply is not None:
        return "bandit: the model does not speak of it"
    if memory.trouble is not None:
        return f"bandit, without an answer of the model: {memory.trouble.code}, {memory.trouble.message}"
    return "bandit: the model has not been asked"


def refreshed(state: State[Memory], asked: Asked) -> State[Memory]:
    """The state after an answer of the model, or after trouble instead of one."""
    return evolve(state, memory=state.memory.told(asked, state.step))


def due(state: State[Memory], every: int) -> bool:
    """Whether to ask now: at first, after `every` observations, and when nothing that was proposed is open any more.

    Not where nothing is open, and not again after trouble that lasts; after other trouble the more rarely, the more
    questions in a row met it.
    """
    memory, choices = state.memory, state.open()
    if not choices or (memory.trouble is not None and memory.trouble.lasting):
        return False
    if memory.reply is None:
        pause = every * 2 ** min(memory.failures - 1, 6)
        return memory.trouble is None or state.step >= memory.answered + pause
    used = state.step > memory.answered and not (_matched(memory.reply.proposals, choices) or drafts(state))
    return used or state.step >= memory.answered + every


def drafts(state: State[Memory]) -> tuple[Kernel, ...]:
    """Texts of kernels in the answer in force that are no options yet, and were not tried."""
    reply = state.memory.reply
    known = {each.name for each in state.situation.options} | {each.choice.name for each in state.situation.tried}
    return tuple(kernel for kernel in _kernels(reply) if kernel.name not in known)


def _kernels(reply: Reply | None) -> tuple[Kernel, ...]:
    targets = [each.target for each in (reply.proposals if reply else ())]
    return tuple(each for each in targets if isinstance(each, Kernel))


def offered(state: State[Memory]) -> State[Memory]:
    """With the drafts among the options, so that they are proposed and go through the gate as all others do.

    A draft has the steps and features of the best design so far, which it was written from; of the first option where
    nothing passed yet.
    """
    situation = state.situation
    best = situation.best
    base = best.choice if best else next(iter(situation.options), None)
    if base is None:
        return state
    added = tuple(
        Choice(each.name, (*base.steps, Step(KERNEL_TEXT, each.name)), base.features, text=each.text)
        for each in drafts(state)
    )
    return evolve(state, situation=evolve(situation, options=(*situation.options, *added)))
