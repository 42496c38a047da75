"""Inputs of a request besides the planner's state: kernels and refusals as texts, the problem, knowledge."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from argus.policy.planner import Outcome
from argus.policy.practice import Practice
from argus.policy.technique import Technique


@frozen
class Rejection:
    """A candidate that the gate rejected. report: JSON of its counterexample.

    text: its source, empty for a design of a family. diagnostics: rendered. name, outcome: as in its observation.
    """

    name: str
    outcome: Outcome
    report: str = "{}"
    text: str = ""
    diagnostics: tuple[str, ...] = ()


@frozen
class Shown:
    """A kernel as the model sees it. text: in the kernel language. outcome: one line.

    resources: of the compiler's report. breakdown: busy microseconds of each unit in the static model. limiting: what
    bounds its time, with the line of the longest stall.
    """

    name: str
    text: str
    outcome: str = ""
    resources: Mapping[str, float] = field(factory=dict[str, float])
    breakdown: Mapping[str, float] = field(factory=dict[str, float])
    limiting: str = ""


@frozen
class Example:
    """A proved kernel of this repository. subjects: words that retrieve it."""

    name: str
    target: str
    subjects: str
    text: str


@frozen
class View:
    """best, last: kernels; None before any was judged. rejections: latest last. techniques: of the knowledge base.

    problem: its name without folders; reference: its specification, with shapes. earlier: lessons of other runs.
    folders: directories of this machine, which are cut from every text that is sent. examples: shipped kernels, of
    which the nearest to the problem is shown. practices: of the problem's family.
    """

    best: Shown | None = None
    last: Shown | None = None
    rejections: tuple[Rejection, ...] = ()
    techniques: tuple[Technique, ...] = ()
    problem: str = ""
    reference: str = ""
    earlier: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    practices: tuple[Practice, ...] = ()
