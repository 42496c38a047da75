"""Kernels from untrusted source text: traced in a sandbox and checked against the problem's specification."""

from __future__ import annotations

from typing import TypeVar

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dtype import bf16
from argus.core.index_text import show
from argus.core.ir import Kernel, Program, Tag, walk
from argus.core.verdict import Proved
from argus.runtime.sandbox import Refused, trace_text
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile, signature
from argus.search.problems.problem import Problem
from argus.search.problems.traced import Traced
from argus.verifier.reference import claimed_contraction

TracedT = TypeVar("TracedT", bound=Traced)
RESULT = "each element of `C` is bf16(sum over k of A * B)"
_TAGGED = 2
_SHAPES = {"A": ("M", "K"), "B": ("N", "K"), "C": ("M", "N")}


def trace_candidate(text: str, problem: Problem) -> Kernel:
    """Trace the text, which must have one kernel with the problem's parameters.

    Raises ArgusError: E907 for another kernel, E0xx to E2xx and E941 to E945 for errors in the text.
    """
    found = trace_text(text)
    if isinstance(found, Refused):
        raise ArgusError(found.diagnostic)
    if len(found) != 1:
        raise _wrong_kernel(f"the text has {len(found)} kernels, expected one")
    return check_parameters(found[0].trace(), problem)


def check_parameters(kernel: TracedT, problem: Problem) -> TracedT:
    """Return the kernel or program. Raises ArgusError (E907) if it is for another target or has other parameters."""
    if kernel.target.name != problem.target:
        raise _wrong_kernel(f"`{kernel.name}` is for {kernel.target}, expected {problem.target}")
    if isinstance(problem, KernelFile | FamilyProblem):
        expected = signature(_first(problem))
        if signature(kernel) != expected:
            found, wanted = _format_parameters(signature(kernel)), _format_parameters(expected)
            raise _wrong_kernel(f"`{kernel.name}` takes {found}, expected {wanted}")
        return kernel
    shapes = {each.name: tuple(show(extent) for extent in each.shape) for each in kernel.parameters}
    # In order, since callers pass arrays by position.
    if tuple(shapes.items()) != tuple(_SHAPES.items()) or any(each.dtype != bf16 for each in kernel.parameters):
        said = ", ".join(f"{each.name} {shapes[each.name]} {each.dtype.name}" for each in kernel.parameters)
        raise _wrong_kernel(f"`{kernel.name}` takes {said}, expected A (M, K), B (N, K) and C (M, N) of bf16, in order")
    return kernel


def _first(problem: KernelFile | FamilyProblem) -> Kernel | Program:
    """A kernel of the problem, whose parameters all have."""
    if isinstance(problem, FamilyProblem):
        return problem.kernel(problem.space.usual)
    return next(iter(problem.variants.values())).kernel


def unproved_part(verdict: Proved, kernel: Kernel, *, written: bool) -> str:
    """What a proof does not show about the problem; empty if it proves the whole specification.

    written: whether the kernel is from source text. Then its tags are untrusted too: the proof is relative to them, so
    they must name exactly the row and column coordinates of the operands in memory, and there may be no other tags.
    """
    if verdict.results == (RESULT,):
        return _wrong_tags(kernel) if written else ""
    return f"the proved result is not the product: {'; '.join(verdict.results) or 'nothing of C'}, expected {RESULT}"


def _wrong_tags(kernel: Kernel) -> str:
    """How a kernel's tags differ from its operands' coordinates; empty if they agree."""
    tags = sum(isinstance(stmt, Tag) for stmt in walk(kernel.body))
    claimed = claimed_contraction(kernel)
    if tags == _TAGGED and claimed is not None:
        operands = claimed.left.name, claimed.right.name, claimed.output.name
        if (*operands, claimed.equation) == ("A", "B", "C", "mk,nk->mn"):
            return ""
    found = "no product" if claimed is None else claimed.equation
    return (
        "the tags do not specify the product: expected two tags, A[m, k] as (m, k) and B[n, k] as (n, k), and C written"
        f" as (m, n), found {tags} tags that claim {found}"
    )


def _format_parameters(parameters: tuple[tuple[str, str, tuple[str, ...]], ...]) -> str:
    return ", ".join(f"{name} ({', '.join(shape)}) of {dtype}" for name, dtype, shape in parameters)


def _wrong_kernel(message: str) -> ArgusError:
    return ArgusError(Diagnostic("E907", "error", message, help="declare one kernel of the problem's parameters"))
