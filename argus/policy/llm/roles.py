"""The roles of a model, each one type of request: planner, lowering agent and repair. Each can be replaced.

The two other roles are not requests: the validator is the gate (`argus.search.evaluation`), and the policy memory is
`Memory`, with the lessons of other runs in `View.earlier`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from attrs import frozen

from argus.policy.llm.memory import Memory
from argus.policy.llm.reply import Faulty, Reply, TaskName
from argus.policy.llm.tasks import Task
from argus.policy.llm.view import View
from argus.policy.planner import RankedChoice, State


@frozen
class Question:
    """What a role knows. ranking: open designs in the order of a statistical model."""

    task: Task
    state: State[Memory]
    ranking: Sequence[RankedChoice]
    view: View = View()  # noqa: RUF009 reason: frozen


@frozen
class Tool:
    """The tool that the model must call. schema: JSON Schema of its input."""

    name: str
    description: str
    schema: Mapping[str, object]


class Role(Protocol):
    """One type of request. Texts go from the most to the least constant, so that endpoints can cache them."""

    @property
    def tool(self) -> Tool: ...

    def system(self, asked: Question) -> str:
        """The system text, constant over a run."""
        ...

    def problem(self, asked: Question) -> str:
        """The first part of the message, constant over a run."""
        ...

    def now(self, asked: Question) -> str:
        """The second part of the message: the state of the search."""
        ...

    def parse(self, data: object, asked: Question) -> Reply | Faulty:
        """Validate the input of the tool call. Raises nothing."""
        ...


Roles = Mapping[TaskName, Role]
