"""What a certificate claims of a kernel for a product of matrices. Delivery and check compute it alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.ops.choice import select
from argus.search.certificates import certificate, claims
from argus.search.certificates.certificate import Baseline, Design, Numbers
from argus.search.designs.space import describe, situation
from argus.search.evaluation.numerics import REFERENCE, SEEDS, TOLERANCE, compare_product, small_shapes
from argus.search.problems.problem import Gemm


def problem(asked: Gemm) -> certificate.Problem:
    return certificate.Problem(str(asked), asked.target, dict(asked.sizes))


def design(asked: Gemm, name: str, text: str = "") -> Design:
    """text: of a kernel that somebody wrote. Raises ArgusError (E903) where no design is called that."""
    if text:
        return Design(name, dict(claims.WRITTEN), ())
    found = describe(asked, name, asked.config(name))
    knobs = {knob: str(value) for knob, value in found.knobs}
    return Design(name, knobs, tuple(str(step) for step in found.techniques))


def baseline(asked: Gemm, times: Mapping[str, float]) -> Baseline:
    """What one would launch without a search: what `select` names, else the first design. times: that are known."""
    try:
        name, why = select(asked.m, asked.n, asked.k, asked.dtype, asked.target), "what `select` names without a search"
    except ArgusError:
        name, why = situation(asked).options[0].name, "the first design of the space"
    return Baseline(name, why, times.get(name))


def numbers(found: tuple[certificate.Run, ...]) -> Numbers:
    return Numbers(REFERENCE, TOLERANCE, found)


def runs(kernel: Kernel, seeds: Sequence[int] = SEEDS) -> tuple[certificate.Run, ...]:
    """In the interpreter, each beside the float64 reference. Raises ArgusError (E401, E402, E501)."""
    return tuple(_run(kernel, shape, seed) for seed in seeds for shape in small_shapes(kernel, seed))


def _run(kernel: Kernel, shape: tuple[int, int, int], seed: int) -> certificate.Run:
    found = compare_product(kernel, shape, seed)
    return certificate.Run(shape, seed, found.elements, found.outside, found.worst, found.allowed)
