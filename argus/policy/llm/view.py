"""Inputs of the prompt besides the planner's state: the best kernel, rejected candidates, techniques."""

from __future__ import annotations

from attrs import frozen

from argus.policy.planner import Outcome
from argus.policy.technique import Technique


@frozen
class Rejection:
    """A candidate that the gate rejected. report: JSON of its diagnostics and counterexample."""

    name: str
    outcome: Outcome
    report: str = "{}"


@frozen
class View:
    """kernel: text of the best design so far. rejections: latest last. techniques: of the knowledge base."""

    kernel: str = ""
    rejections: tuple[Rejection, ...] = ()
    techniques: tuple[Technique, ...] = ()
