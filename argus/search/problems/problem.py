"""Problems of the search, as a user names them: a GEMM or another family with its extents, or a kernel file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.core.target import TARGETS
from argus.kernels.gemm import Config, configuration, gemm
from argus.policy.bounds import CEILINGS, Bounds, Work, bounds
from argus.policy.bounds import gemm as gemm_work
from argus.search.problems.families.problem import FORMS, FamilyProblem, family_problem, is_family
from argus.search.problems.families.torch_module import display, is_torch_file, torch_name
from argus.search.problems.kernel_file import (
    KernelFile,
    file_problem,
    is_journal_name,
    problem_from_journal,
    short_name,
)
from argus.search.problems.traced import Traced

_GEMM = re.compile(r"gemm:([1-9]\d{0,8})[x×]([1-9]\d{0,8})[x×]([1-9]\d{0,8})(?::(\w+))?")
DTYPES = ("bf16",)


@frozen
class Gemm:
    """C = A @ B^T: A (m, k), B (n, k), C (m, n), elements of `dtype`."""

    m: int
    n: int
    k: int
    dtype: str
    target: str

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"M": self.m, "N": self.n, "K": self.k}

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats of verdicts: none, as the claims are those of the shipped family."""
        return ()

    @property
    def work(self) -> Work:
        return gemm_work(self.m, self.n, self.k, self.dtype)

    @property
    def bounds(self) -> Bounds:
        return bounds(self.work, CEILINGS[self.target])

    def config(self, name: str) -> Config:
        """The configuration of a name. Raises ArgusError (E903) for an unknown name."""
        found = configuration(name)
        if found is None or found.target.name != self.target:
            message = f"`{name}` is not a design of `{self}` on {self.target}"
            raise ArgusError(
                Diagnostic("E903", "error", message, help="`argus optimize` lists designs while it tries them")
            )
        return found

    def kernel(self, name: str) -> Kernel:
        """The traced kernel of a design. Raises ArgusError: E903, and E1xx or E2xx if it is ill-formed."""
        return gemm.instance(self.config(name), name)

    def __str__(self) -> str:
        return f"gemm:{self.m}x{self.n}x{self.k}:{self.dtype}"


Problem = Gemm | FamilyProblem | KernelFile


def sizes_of(problem: Problem, kernel: Traced) -> Mapping[str, int]:
    """The problem's sizes for a kernel of it, of which some may be this kernel's alone."""
    return problem.sizes_of(kernel.name) if isinstance(problem, FamilyProblem) else problem.sizes


def problem_of(text: str, target: str, sizes: str = "") -> Problem:
    """Parse a problem name of a user or a journal: `gemm:MxNxK:DTYPE`, that of another family, or a file at sizes.

    Raises ArgusError: E903, and the errors of `file_problem`.
    """
    if is_journal_name(text):
        return problem_from_journal(text, target)
    if not sizes and not is_family(text) and is_torch_file(text):
        return family_problem(torch_name(text), target)
    if not _is_of_family(text) and (sizes or _is_file(text)):
        return file_problem(text, sizes, target)
    if sizes:
        message = f"the name `{text}` already contains the sizes"
        raise ArgusError(Diagnostic("E903", "error", message, help="leave --sizes out"))
    return family_problem(text, target) if is_family(text) else gemm_of(text, target)


def display_name(text: str) -> str:
    """The name of a problem for display: without digest and folder for a file, unchanged for others."""
    return short_name(text) or display(text) or text


def _is_of_family(text: str) -> bool:
    return text.partition(":")[0] == "gemm" or is_family(text)


def _is_file(text: str) -> bool:
    return Path(text).is_file() or text.partition(":")[0].endswith(".py")


def gemm_of(text: str, target: str) -> Gemm:
    """Parse the name of a GEMM. Raises ArgusError (E903)."""
    known = [each.name for each in TARGETS]
    if target not in known:
        message = f"there is no target `{target}`, expected {' or '.join(known)}"
        raise ArgusError(Diagnostic("E903", "error", message, help="name it with --target"))
    match = _GEMM.fullmatch(text)
    if match is None:
        message = f"`{text}` is not a problem, expected gemm:MxNxK, gemm:MxNxK:DTYPE or a kernel file"
        others = "; other families: " + ", ".join(FORMS)
        raise ArgusError(Diagnostic("E903", "error", message, help="for example gemm:8192x8192x8192:bf16" + others))
    m, n, k = map(int, match.groups()[:3])
    dtype = match[4] or DTYPES[0]
    if dtype not in DTYPES:
        message = f"the GEMM family supports {', '.join(DTYPES)}, found `{dtype}`"
        raise ArgusError(Diagnostic("E903", "error", message, help="leave out the element type"))
    return Gemm(m, n, k, dtype, target)
