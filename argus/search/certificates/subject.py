"""What the check of a certificate asks of the problem that the kernel solves, whatever kind of problem it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from argus.core.ir import Kernel
from argus.core.verdict import Proved
from argus.policy.bounds import Bounds
from argus.search.certificates.certificate import Baseline, Problem
from argus.search.certificates.check_result import Check


class Subject(Protocol):
    """The problem of a certificate. A method returns a `Check` where it cannot compute what it is asked for."""

    @property
    def problem(self) -> Problem:
        """Computed from the claimed name."""
        ...

    def of_design(self, kernel: Kernel) -> Iterator[Check]:
        """Whether the kernel takes the problem's operands and sizes, and is what this Argus makes of the design. A
        failure of "admitted" ends all checks.
        """
        ...

    def lacking(self, kernel: Kernel) -> Callable[[Proved], str] | None:
        """Returns what a proof leaves open of the problem, empty if nothing. None: the problem states no results."""
        ...

    def loader(self, kernel: Kernel, stem: str) -> str:
        """The text of load.py. stem: of the names of emitted files."""
        ...

    def numbers(self, kernel: Kernel, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds | Check | None]:
        """Whether the interpreter computes the claimed errors again, and right results for other seeds; and the bounds
        of the problem, None where only a file that is not at hand states them.
        """
        ...

    def least(self, kernel: Kernel) -> Bounds:
        """The bounds of the work that this kernel is known to do."""
        ...

    def baseline(self) -> tuple[Baseline, Callable[[str], Kernel]] | Check:
        """What the design is compared with, and the kernel of each design by name."""
        ...
