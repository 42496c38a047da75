"""Interface between the certificate check and the kinds of problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from argus.core.ir import Kernel
from argus.core.verdict import Proved
from argus.policy.bounds import Bounds
from argus.search.certificates.certificate import Baseline, Problem
from argus.search.certificates.check_result import Check
from argus.search.problems.traced import Traced


class Subject(Protocol):
    """The problem of a certificate. A method that cannot compute its result returns a `Check` instead."""

    @property
    def problem(self) -> Problem:
        """The problem, parsed from the claimed name."""
        ...

    @property
    def programs(self) -> bool:
        """Whether what it is about may be a program of several launches; else its methods are given kernels."""
        ...

    def sizes(self, kernel: Traced) -> Mapping[str, int]:
        """The problem's sizes for this kernel."""
        ...

    def check_design(self, kernel: Traced) -> Iterator[Check]:
        """Check that the kernel has the problem's parameters and sizes, and equals the design traced here. A failure
        of "admitted" ends all checks.
        """
        ...

    def unproved_part(self, kernel: Traced) -> Callable[[Proved], str] | None:
        """A function that states what a proof does not show, empty if nothing; None without a specification."""
        ...

    def loader(self, kernel: Traced, stem: str) -> str:
        """The text of load.py. stem: of the emitted files' names."""
        ...

    def check_numbers(self, kernel: Traced, seeds: Sequence[int]) -> tuple[Iterator[Check], Bounds | Check | None]:
        """Check that the interpreter reproduces the claimed errors, and is right for other seeds; also return the
        problem's bounds, None if they depend on a missing file.
        """
        ...

    def least(self, kernel: Traced) -> Bounds:
        """Bounds of this kernel's known work."""
        ...

    def baseline(self) -> tuple[Baseline, Callable[[str], Traced]] | Check:
        """The baseline, and the kernel of each design by name."""
        ...


def single(traced: Traced) -> Kernel:
    """What a subject without programs is given."""
    assert isinstance(traced, Kernel)
    return traced
