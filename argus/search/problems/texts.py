"""What a model is shown of a problem: kernels in the language, the reference with shapes, no folder of this machine."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import assert_never

from argus.policy.knowledge import load_practices
from argus.policy.llm.view import View
from argus.policy.planner import Choice
from argus.policy.practice import Practice
from argus.report.sources import read_source
from argus.runtime.sandbox.user_reference import REFERENCE
from argus.search.problems.families.problem import FamilyProblem
from argus.search.problems.kernel_file import KernelFile, signature
from argus.search.problems.problem import Gemm, Problem, display_name
from argus.search.problems.shipped_kernels import shipped_kernels, without_imports

_PRODUCT = """\
C[m, n] = bf16(sum over k of A[m, k] * B[n, k]), sums in f32
A (M, K), B (N, K), C (M, N), row-major, elements of {dtype}: M={m}, N={n}, K={k}
# The claim of a kernel, which the gate compares with the proved result:
tag(A, lambda m, k: dict(m=m, k=k)); tag(B, lambda n, k: dict(n=n, k=k))
assert_covers(acc.tag.k, 0, K); assert_written_once(C, lambda m, n: dict(m=m, n=n))"""


def kernel_text(problem: Problem, choice: Choice) -> str:
    """A kernel in the language: the source of a written kernel, of a design of a family, or of the user's file.

    Raises ArgusError (E903) for the name of no design.
    """
    if choice.text:
        return choice.text
    match problem:
        case Gemm():
            return _schedule_text(problem.config(choice.name), choice)
        case FamilyProblem():
            return _schedule_text(problem.design(choice.name).config, choice)
        case KernelFile():
            made = problem.variants.get(choice.name)
            base, steps = ("", ()) if made is None else (made.base, made.steps)
            by = f", rewritten by {' + '.join(map(str, steps))}" if steps else ""
            return f"# {choice.name}: the kernel {base} of this file{by}\n{_file_text(problem)}"
        case _:
            assert_never(problem)


def _schedule_text(config: object, choice: Choice) -> str:
    """The module of the design's schedule without its imports, under its parameters."""
    head = f"# {choice.name}: this schedule with cfg = {config!r}"
    return f"{head}\n{without_imports(inspect.getsource(sys.modules[type(config).__module__]))}"


def _file_text(problem: KernelFile) -> str:
    return read_source(problem.path) or ""


def reference_text(problem: Problem) -> str:
    """The specification of a problem: shapes, element types, and the user's reference function."""
    match problem:
        case Gemm(m, n, k, dtype):
            return _PRODUCT.format(m=m, n=n, k=k, dtype=dtype)
        case FamilyProblem():
            traced = problem.kernel(problem.space.usual)
            shapes = "\n".join(f"{name} ({', '.join(shape)}) of {dtype}" for name, dtype, shape in signature(traced))
            sizes = ", ".join(f"{name}={extent}" for name, extent in problem.sizes.items())
            return f"{shapes}\n{sizes}\n{problem.space.told}"
        case KernelFile():
            first = next(iter(problem.variants.values())).kernel
            shapes = "\n".join(f"{name} ({', '.join(shape)}) of {dtype}" for name, dtype, shape in signature(first))
            sizes = ", ".join(f"{name}={extent}" for name, extent in problem.extents)
            return f"{shapes}\n{sizes}\n{_reference_source(_file_text(problem))}"
        case _:
            assert_never(problem)


def _reference_source(text: str) -> str:
    """The function `reference` of a file; empty where it is not a function of the file itself."""
    for each in ast.parse(text).body:
        if isinstance(each, ast.FunctionDef) and each.name == REFERENCE:
            return ast.get_source_segment(text, each) or ""
    return ""


def shown_name(problem: Problem) -> str:
    """The problem's name without digest and folder."""
    return display_name(str(problem))


def local_folders(problem: Problem) -> tuple[str, ...]:
    """Folders of this machine that a message may name: none of them is sent."""
    package = Path(__file__).resolve().parents[2]
    own = (str(Path(problem.path).parent),) if isinstance(problem, KernelFile) else ()
    found = (*own, str(Path.cwd()), str(Path.home()), str(package.parent))
    return tuple(dict.fromkeys(each for each in found if each != "/"))


def problem_view(problem: Problem, earlier: tuple[str, ...] = ()) -> View:
    """What every request of a run shows of its problem. earlier: lessons of other runs."""
    return View(
        problem=shown_name(problem),
        reference=reference_text(problem),
        earlier=earlier,
        folders=local_folders(problem),
        examples=shipped_kernels(),
        practices=practices_of(problem),
    )


_PRACTICES = {"conv": "convolution", "moe": "experts"}
"""The family of practices by that of a problem, where it has another name."""


def practices_of(problem: Problem) -> tuple[Practice, ...]:
    """What the knowledge base tells of the problem's family; none of products, which have techniques, and of files."""
    if not isinstance(problem, FamilyProblem):
        return ()
    name = str(problem).partition(":")[0]
    family = _PRACTICES.get(name, name)
    return tuple(each for each in load_practices() if each.family == family and problem.target in each.targets)
