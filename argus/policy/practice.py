"""Data model of a practice: what was tried on a family of kernels, what it gave, and where it lost."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Family = Literal["attention", "convolution", "decode", "experts", "rows"]


@frozen
class Experiment:
    """A recorded comparison. ratio: the speed with the practice over that without it, below 1 where it lost.

    command: repeats it, or measured it with variants that are not in the tree. record: the file of the checkout with
    the figure. shape: of the problem, with what it is compared with if that is a peer. quote: the words of the record
    that give the ratio; or instead of them without, design: two designs in a table of times, whose problem shape is.
    """

    command: str
    record: str
    shape: str
    ratio: float
    quote: str = ""
    without: str = ""
    design: str = ""


@frozen
class Practice:
    """One file of kb/practices/.

    name: the file's name without `.md`. family: of the kernels. intent: one sentence. targets: where it was tried.
    invariants: those that a kernel with it must still have proved. applies: when it gains. loses: when it lost, or that
    no loss is recorded. conjecture: no experiment supports it. text: the page below the front matter.
    """

    name: str
    title: str
    family: Family
    intent: str
    targets: tuple[str, ...]
    invariants: tuple[str, ...]
    applies: str
    loses: str
    experiments: tuple[Experiment, ...] = ()
    conjecture: bool = False
    text: str = ""
