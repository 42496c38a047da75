"""Computes the claims about a GEMM kernel. Shared by delivery and check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.core.ir import Kernel
from argus.search.certificates import certificate, claims
from argus.search.certificates.certificate import Baseline, Design, Numbers
from argus.search.designs.space import describe
from argus.search.designs.usual import usual_design
from argus.search.evaluation.numerics import REFERENCE, SEEDS, TOLERANCE, compare_product, small_shapes
from argus.search.problems.problem import Gemm


def problem(asked: Gemm) -> certificate.Problem:
    return certificate.Problem(str(asked), asked.target, dict(asked.sizes))


def design(asked: Gemm, name: str, text: str = "") -> Design:
    """The claims about a design. text: source of a kernel by a model. Raises ArgusError (E903) for an unknown name."""
    if text:
        return Design(name, dict(claims.TEXT_KNOBS), ())
    found = describe(asked, name, asked.config(name))
    knobs = {knob: str(value) for knob, value in found.knobs}
    return Design(name, knobs, tuple(str(step) for step in found.techniques))


def baseline(asked: Gemm, times: Mapping[str, float]) -> Baseline:
    """The design used without a search. times: known times by design."""
    name, why = usual_design(asked)
    return Baseline(name, why, times.get(name))


def numbers(found: tuple[certificate.Run, ...]) -> Numbers:
    return Numbers(REFERENCE, TOLERANCE, found)


def runs(kernel: Kernel, seeds: Sequence[int] = SEEDS) -> tuple[certificate.Run, ...]:
    """Run the kernel in the interpreter against the float64 reference. Raises ArgusError (E401, E402, E501)."""
    return tuple(_run(kernel, shape, seed) for seed in seeds for shape in small_shapes(kernel, seed))


def _run(kernel: Kernel, shape: tuple[int, int, int], seed: int) -> certificate.Run:
    found = compare_product(kernel, shape, seed)
    return certificate.Run(shape, seed, found.elements, found.outside, found.worst, found.allowed)
