"""What a language model was asked in a run, and what it answered: rounds of the HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from attrs import frozen

from argus.core.diagnostic import ArgusError
from argus.policy.llm.record import Response, from_data
from argus.policy.llm.reply import Kernel, Knobs, Option, Proposal, Reply, Target, TaskName, Trouble, Use, Write
from argus.search.events import Asked, Event


@frozen
class Round:
    """A question to a model and its answer.

    task, about: the request, and the plan or the refused kernel that it was about. proposals: a line each. refused: of
    proposals that could not be taken, with the reasons, and of answers that could not be read. lessons: what the model
    noted. cost: US dollars.
    """

    model: str
    task: TaskName
    about: str
    proposals: tuple[str, ...]
    refused: tuple[str, ...]
    lessons: tuple[str, ...]
    tokens: int
    cost: float


def rounds(events: Iterable[Event]) -> tuple[Round, ...]:
    """The rounds of a run, in order. An answer that another version has recorded has no contents here."""
    return tuple(_round(each, answer) for each, answer in _answers(events))


def written(events: Iterable[Event]) -> Mapping[str, Kernel]:
    """The kernels that a model wrote, by name."""
    replies = (answer for _, answer in _answers(events) if isinstance(answer, Reply))
    targets = (each.target for reply in replies for each in reply.proposals)
    return {each.name: each for each in targets if isinstance(each, Kernel)}


def _answers(events: Iterable[Event]) -> Iterator[tuple[Asked, Response | None]]:
    for event in events:
        if isinstance(event, Asked):
            try:
                yield event, from_data(event.reply)
            except ArgusError:
                yield event, None


def _round(asked: Asked, answer: Response | None) -> Round:
    match answer:
        case Reply(proposals, lessons, dropped, faults, task=task, about=about):
            found = tuple(map(_line, proposals))
            return Round(asked.model, task, about, found, (*faults, *dropped), lessons, asked.tokens, asked.cost)
        case Trouble(code, message, faults=faults, task=task, about=about):
            refused = (f"{code}: {message}", *faults)
            return Round(asked.model, task, about, (), refused, (), asked.tokens, asked.cost)
        case None:
            return Round(asked.model, "plan", "", (), ("the answer cannot be read",), (), asked.tokens, asked.cost)


def _line(proposal: Proposal) -> str:
    reason = f": {proposal.reason}" if proposal.reason else ""
    return f"{_named(proposal.target)}{reason} ({proposal.confidence:.0%} sure)"


def _named(target: Target) -> str:
    match target:
        case Option(name=name):
            return name
        case Use(technique=technique):
            return f"an option with {technique}"
        case Knobs(values=values):
            return "an option with " + ", ".join(f"{name} = {value}" for name, value in values)
        case Kernel(repairs=repairs) as kernel:
            return f"{kernel.name}, a repair of {repairs}" if repairs else kernel.name
        case Write(plan=plan) as write:
            return f"{write.name}, {plan}"
        case _:
            assert_never(target)
