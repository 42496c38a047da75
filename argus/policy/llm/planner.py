"""The language-model planner: ranks the model's proposals first, all other choices by the bandit.

The call itself is a side effect and lives in `argus.search.llm_client`. A loop asks when `should_ask` is true, records
the response and continues from `with_response(state, response)`; a recorded response leads to the same state.
"""

from __future__ import annotations

from math import log

import numpy as np
from attrs import evolve, field, frozen

from argus.policy.bandit import Bandit, Posteriors
from argus.policy.llm.memory import Memory, feedback, matches
from argus.policy.llm.record import Response
from argus.policy.llm.reply import Kernel, Proposal, Reply
from argus.policy.planner import Choice, Observation, RankedChoice, Situation, State, Step

_LEAST = 1e-3
"""Lower bound of a confidence when ranks are sampled."""
KERNEL_TEXT = "kernel-text"


@frozen
class Llm:
    """bandit: ranks the choices that the model does not propose. spread: temperature of sampling; 0: by confidence."""

    bandit: Bandit = field(factory=lambda: Bandit({}))
    name: str = "llm"
    spread: float = 0.0

    def start(self, situation: Situation, seed: int) -> State[Memory]:
        return State(seed, situation, Memory(self.bandit.start(situation, seed).memory))

    def propose(self, state: State[Memory]) -> tuple[RankedChoice, ...]:
        """Open choices: the model's proposals first, then the others in the bandit's order."""
        rest = self.bandit_ranking(state)
        meant = _match_proposals(self._order(state), tuple(each.choice for each in rest))
        names = {choice.name for choice, _ in meant}
        why = _fallback(state.memory)
        proposed = [(choice, _why(proposal)) for choice, proposal in meant]
        others = [(each.choice, why) for each in rest if each.choice.name not in names]
        ordered = (*proposed, *others)
        return tuple(
            RankedChoice(choice, float(len(ordered) - place), why) for place, (choice, why) in enumerate(ordered)
        )

    def bandit_ranking(self, state: State[Memory]) -> tuple[RankedChoice, ...]:
        """The bandit's ranking of the open choices."""
        return self.bandit.propose(_bandit_state(state))

    def learn(self, state: State[Memory], observation: Observation) -> State[Memory]:
        beliefs = self.bandit.learn(_bandit_state(state), observation).memory
        line = feedback(state.situation, observation, state.memory.reply)
        return state.with_observation(observation, state.memory.with_feedback(beliefs, line))

    def _order(self, state: State[Memory]) -> tuple[Proposal, ...]:
        """Proposals with satisfied prerequisites first; each part by confidence, or sampled without replacement.

        Adding Gumbel noise to log weights and sorting samples in proportion to the weights [Kool 2019, section 2].
        """
        reply = state.memory.reply
        if reply is None:
            return ()
        noise = state.generator().gumbel(size=len(reply.proposals)) * self.spread
        scores = [log(max(each.confidence, _LEAST)) for each in reply.proposals]
        by_score = np.argsort(-(np.array(scores) + noise), kind="stable")
        proposals = tuple(reply.proposals[int(place)] for place in by_score)
        return tuple(sorted(proposals, key=lambda each: not _has_prerequisites(each, state.situation)))


def _bandit_state(state: State[Memory]) -> State[Posteriors]:
    """The state of the embedded bandit."""
    return State(state.seed, state.situation, state.memory.beliefs, state.pending)


def _has_prerequisites(proposal: Proposal, situation: Situation) -> bool:
    """Whether each technique in `needs` is in the proposed design or in one that passed."""
    own = next((each for each in situation.options if matches(proposal, each)), None)
    designs = [*(each.choice for each in situation.tried if each.passed), *([own] if own else [])]
    return {step.technique for each in designs for step in each.steps}.issuperset(proposal.needs)


def _match_proposals(proposals: tuple[Proposal, ...], choices: tuple[Choice, ...]) -> list[tuple[Choice, Proposal]]:
    """For each proposal, the first matching choice that no earlier proposal has taken."""
    taken: dict[str, tuple[Choice, Proposal]] = {}
    for proposal in proposals:
        found = next((each for each in choices if each.name not in taken and matches(proposal, each)), None)
        if found is not None:
            taken[found.name] = (found, proposal)
    return list(taken.values())


def _why(proposal: Proposal) -> str:
    return f"model, confidence {proposal.confidence:.2f}: {proposal.reason}"


def _fallback(memory: Memory) -> str:
    if memory.reply is not None:
        return "bandit: the model did not propose it"
    if memory.trouble is not None:
        return f"bandit, without an answer of the model: {memory.trouble.code}, {memory.trouble.message}"
    return "bandit: the model has not been asked"


def with_response(state: State[Memory], asked: Response) -> State[Memory]:
    """The state after a response of the model: an answer or a failure."""
    return evolve(state, memory=state.memory.with_response(asked, state.step))


def should_ask(state: State[Memory], every: int) -> bool:
    """Whether to ask now: initially, after `every` observations, and when no proposal is open any more.

    Never if no choice is open or after a permanent failure; after transient failures with exponential backoff.
    """
    memory, choices = state.memory, state.open()
    if not choices or (memory.trouble is not None and memory.trouble.lasting):
        return False
    if memory.reply is None:
        pause = every * 2 ** min(memory.failures - 1, 6)
        return memory.trouble is None or state.step >= memory.answered + pause
    used = state.step > memory.answered and not (
        _match_proposals(memory.reply.proposals, choices) or untried_kernels(state)
    )
    return used or state.step >= memory.answered + every


def untried_kernels(state: State[Memory]) -> tuple[Kernel, ...]:
    """Kernel texts of the current answer that are neither options nor tried."""
    reply = state.memory.reply
    known = {each.name for each in state.situation.options} | {each.choice.name for each in state.situation.tried}
    return tuple(kernel for kernel in _kernels(reply) if kernel.name not in known)


def _kernels(reply: Reply | None) -> tuple[Kernel, ...]:
    targets = [each.target for each in (reply.proposals if reply else ())]
    return tuple(each for each in targets if isinstance(each, Kernel))


def with_kernels_as_options(state: State[Memory]) -> State[Memory]:
    """Add the model's kernel texts to the options, so that they pass the same gate as all others.

    A text gets the steps and features of the best design so far, which the model was shown; of the first option if
    nothing has passed yet.
    """
    situation = state.situation
    best = situation.best
    base = best.choice if best else next(iter(situation.options), None)
    if base is None:
        return state
    added = tuple(
        Choice(each.name, (*base.steps, Step(KERNEL_TEXT, each.name)), base.features, text=each.text)
        for each in untried_kernels(state)
    )
    return evolve(state, situation=evolve(situation, options=(*situation.options, *added)))
