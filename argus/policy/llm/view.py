"""What a loop shows a model beside the state of its search."""

from __future__ import annotations

from attrs import frozen

from argus.policy.planner import Outcome
from argus.policy.technique import Technique


@frozen
class Rejection:
    """A candidate that the gate stopped. report: JSON of its diagnostics and counterexample."""

    name: str
    outcome: Outcome
    report: str = "{}"


@frozen
class View:
    """kernel: the text of the best design so far. rejections: the latest last. techniques: of the knowledge base."""

    kernel: str = ""
    rejections: tuple[Rejection, ...] = ()
    techniques: tuple[Technique, ...] = ()
