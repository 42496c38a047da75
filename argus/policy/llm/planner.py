"""The language-model planner: ranks the model's proposals first, all other choices by the bandit.

The call itself is a side effect and lives in `argus.search.llm_client`. A loop asks when `next_task` names a request,
records the response and continues from `with_response(state, response)`; a recorded response leads to the same state.
"""

from __future__ import annotations

from math import log

import numpy as np
from attrs import evolve, field, frozen

from argus.policy.bandit import Bandit, Posteriors
from argus.policy.llm.memory import Memory, feedback, matches
from argus.policy.llm.record import Response
from argus.policy.llm.reply import Kernel, Proposal
from argus.policy.llm.tasks import match_proposals, untried_kernels
from argus.policy.planner import Choice, Observation, RankedChoice, Situation, State, Step

_LEAST = 1e-3
"""Lower bound of a utility when ranks are sampled."""
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
        """Open choices: the model's proposals, then its earlier kernels, then the others in the bandit's order."""
        rest = self.bandit_ranking(state)
        written = tuple(each for each in state.open() if each.text)
        meant = match_proposals(self._order(state), (*written, *(each.choice for each in rest)))
        names = {choice.name for choice, _ in meant}
        why = _fallback(state.memory)
        proposed = [(choice, _why(proposal)) for choice, proposal in meant]
        earlier = [(each, "model: written earlier") for each in written if each.name not in names]
        others = [(each.choice, why) for each in rest if each.choice.name not in names]
        ordered = (*proposed, *earlier, *others)
        return tuple(
            RankedChoice(choice, float(len(ordered) - place), why) for place, (choice, why) in enumerate(ordered)
        )

    def bandit_ranking(self, state: State[Memory]) -> tuple[RankedChoice, ...]:
        """The bandit's ranking of the open designs; kernels that the model wrote are not among them."""
        return self.bandit.propose(_bandit_state(state))

    def learn(self, state: State[Memory], observation: Observation) -> State[Memory]:
        written = bool(observation.choice.text)
        beliefs = state.memory.beliefs if written else self.bandit.learn(_bandit_state(state), observation).memory
        line = feedback(state.situation, observation, state.memory.reply)
        return state.with_observation(observation, state.memory.with_feedback(beliefs, line))

    def _order(self, state: State[Memory]) -> tuple[Proposal, ...]:
        """Repairs first, then proposals with satisfied prerequisites; each part by utility, or sampled by it.

        Adding Gumbel noise to log weights and sorting samples in proportion to the weights [Kool 2019, section 2].
        """
        reply = state.memory.reply
        if reply is None:
            return ()
        noise = state.generator().gumbel(size=len(reply.proposals)) * self.spread
        gap = state.situation.gap or 1.0
        scores = [log(max(each.utility(gap), _LEAST)) for each in reply.proposals]
        by_score = np.argsort(-(np.array(scores) + noise), kind="stable")
        proposals = tuple(reply.proposals[int(place)] for place in by_score)
        return tuple(
            sorted(proposals, key=lambda each: (not _is_repair(each), not _has_prerequisites(each, state.situation)))
        )


def _bandit_state(state: State[Memory]) -> State[Posteriors]:
    """The state of the embedded bandit, without written kernels among its options."""
    designs = tuple(each for each in state.situation.options if not each.text)
    return State(state.seed, evolve(state.situation, options=designs), state.memory.beliefs, state.pending)


def _is_repair(proposal: Proposal) -> bool:
    return isinstance(proposal.target, Kernel) and bool(proposal.target.repairs)


def _has_prerequisites(proposal: Proposal, situation: Situation) -> bool:
    """Whether each technique in `needs` is in the proposed design or in one that passed."""
    own = next((each for each in situation.options if matches(proposal, each)), None)
    designs = [*(each.choice for each in situation.tried if each.passed), *([own] if own else [])]
    return {step.technique for each in designs for step in each.steps}.issuperset(proposal.needs)


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


def with_kernels_as_options(state: State[Memory]) -> State[Memory]:
    """Add the model's kernel texts to the options, so that they pass the same gate as all others.

    A text has no features: its result says nothing about the designs of a family.
    """
    situation = state.situation
    added = tuple(
        Choice(each.name, (Step(KERNEL_TEXT, ""),), (), text=each.text, repairs=each.repairs)
        for each in untried_kernels(state)
    )
    return evolve(state, situation=evolve(situation, options=(*situation.options, *added))) if added else state
