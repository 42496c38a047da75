"""Which request is due: to repair a refused kernel, to write a planned one, or for a new plan."""

from __future__ import annotations

from attrs import frozen

from argus.policy.llm.memory import Memory, matches
from argus.policy.llm.reply import Kernel, Proposal, Reply, TaskName, Write
from argus.policy.partial_reward import partial_reward
from argus.policy.planner import Choice, Observation, Situation, State

_REPAIRABLE = frozenset({"ill-formed", "refuted", "unknown", "over limits", "not compiled", "wrong"})
_LONGEST_PAUSE = 6
"""Largest exponent of the pause after failures."""


@frozen
class Plan:
    """Rank what to try next."""

    name: TaskName = "plan"
    about: str = ""


@frozen
class Lower:
    """Write the kernel of a plan."""

    plan: Write
    name: TaskName = "lower"

    @property
    def about(self) -> str:
        return self.plan.name


@frozen
class Repair:
    """Mend a refused kernel. round: of this kernel's repairs, from 1; most: rounds until it counts as it is."""

    refused: Observation
    round: int
    most: int
    name: TaskName = "repair"

    @property
    def about(self) -> str:
        return self.refused.choice.name


Task = Plan | Lower | Repair


def next_task(state: State[Memory], every: int, rounds: int) -> Task | None:
    """The request to send now, or None.

    Refused kernels are repaired first, at most `rounds` times each; then planned kernels are written; a plan is due
    initially, after `every` observations, and when no proposal is open any more. After transient failures the next
    request waits exponentially longer; none follows a permanent one.
    """
    memory = state.memory
    if memory.trouble is not None and memory.trouble.lasting:
        return None
    if memory.failures and state.step < memory.answered + every * 2 ** min(memory.failures - 1, _LONGEST_PAUSE):
        return None
    refused = awaiting_repair(state, rounds)
    if refused:
        return Repair(refused[0], _round(refused[0].choice, state.situation) + 1, rounds)
    unwritten = _unwritten_plans(state)
    if unwritten:
        return Lower(unwritten[0])
    return Plan() if _is_plan_due(state, every) else None


def should_ask(state: State[Memory], every: int, rounds: int = 0) -> bool:
    """Whether a request is due."""
    return next_task(state, every, rounds) is not None


def _is_plan_due(state: State[Memory], every: int) -> bool:
    memory = state.memory
    if any(each.text for each in state.open()):
        return False  # a kernel of the last plan has not been judged yet
    if memory.reply is None:
        return True
    used = state.step > memory.answered and not (open_proposals(memory.reply, state) or untried_kernels(state))
    return used or state.step >= memory.answered + every


def open_proposals(reply: Reply, state: State[Memory]) -> list[tuple[Choice, Proposal]]:
    """For each proposal, the first open choice that matches it and that no earlier proposal has taken."""
    return match_proposals(reply.proposals, state.open())


def match_proposals(proposals: tuple[Proposal, ...], choices: tuple[Choice, ...]) -> list[tuple[Choice, Proposal]]:
    """For each proposal, the first matching choice that no earlier proposal has taken."""
    taken: dict[str, tuple[Choice, Proposal]] = {}
    for proposal in proposals:
        found = next((each for each in choices if each.name not in taken and matches(proposal, each)), None)
        if found is not None:
            taken[found.name] = (found, proposal)
    return list(taken.values())


def awaiting_repair(state: State[Memory], rounds: int) -> tuple[Observation, ...]:
    """Refused kernels with rounds of repair left: those that reached the latest stage first, then the latest."""
    situation, memory = state.situation, state.memory
    repaired = {each.repairs for each in _known(situation)}
    found = [
        each
        for each in reversed(situation.tried)
        if each.choice.text
        and each.outcome in _REPAIRABLE
        and each.choice.name not in repaired | memory.given_up
        and _round(each.choice, situation) < rounds
    ]
    return tuple(sorted(found, key=lambda each: -partial_reward(each, situation.bound)))


def _round(choice: Choice, situation: Situation) -> int:
    """The number of repairs that led to a kernel."""
    known = {each.name: each for each in _known(situation)}
    count, seen = 0, {choice.name}
    while choice.repairs and choice.repairs in known and choice.repairs not in seen:
        choice, count = known[choice.repairs], count + 1
        seen.add(choice.name)
    return count


def _known(situation: Situation) -> tuple[Choice, ...]:
    return (*situation.options, *(each.choice for each in situation.tried))


def _unwritten_plans(state: State[Memory]) -> tuple[Write, ...]:
    """Plans of the current answer whose kernel has not been written, and can still be asked for."""
    reply = state.memory.reply
    targets = [each.target for each in (reply.proposals if reply else ())]
    written = {each.plan for each in targets if isinstance(each, Kernel)}
    return tuple(
        each for each in targets if isinstance(each, Write) and each.name not in written | state.memory.given_up
    )


def untried_kernels(state: State[Memory]) -> tuple[Kernel, ...]:
    """Kernel texts of the current answer that are neither options nor tried."""
    reply = state.memory.reply
    known = {each.name for each in _known(state.situation)}
    targets = [each.target for each in (reply.proposals if reply else ())]
    return tuple(each for each in targets if isinstance(each, Kernel) and each.name not in known)
