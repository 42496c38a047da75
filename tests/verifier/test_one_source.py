"""One text gives a kernel for each target: proved, right in the interpreter, built; each inserted wait is needed."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from argus.core.index import Sym
from argus.core.ir import Buffer, Kernel, Wait, walk
from argus.core.verdict import Proved, Refuted
from argus.emit.build import build
from argus.interp.interpret import interpret
from argus.interp.search.schedule import Schedule
from argus.language import Template
from argus.testing.mutation import waits
from argus.verifier.kernel import verify
from tests.verifier.one_source import EPSILON, KERNELS

pytestmark = pytest.mark.share(3, among="one source")

Floats = NDArray[np.float64]
TARGETS = ("gfx942", "sm_90a")
SIZES: Mapping[str, int] = {"N": 264, "R": 3, "M": 40, "K": 72}
each_kernel = pytest.mark.parametrize("template", KERNELS, ids=[template.name for template in KERNELS])
each_target = pytest.mark.parametrize("target", TARGETS)


def expected(name: str, given: Mapping[str, Floats]) -> Floats:
    """What the kernel of this name computes, in float64."""
    match name:
        case "vector_add":
            return given["X"] + given["Y"]
        case "silu_mul":
            return given["G"] / (1 + np.exp(-given["G"])) * given["U"]
        case "softmax":
            powers = np.exp(given["X"])
            return powers / powers.sum(axis=1, keepdims=True)
        case "rms_norm":
            squares = (given["X"] ** 2).mean(axis=1, keepdims=True)
            return given["X"] / np.sqrt(squares + EPSILON) * given["W"]
        case "gemm_bias_relu":
            return np.maximum(given["A"] @ given["B"].T + given["bias"], 0)
        case "transpose":
            return given["X"].T
        case _:
            return given["A"] @ given["B"].T


def shape_of(buffer: Buffer) -> list[int]:
    return [SIZES[size.symbol.name] for size in buffer.shape if isinstance(size, Sym)]


def inserted(kernel: Kernel) -> list[Wait]:
    return [stmt for stmt in walk(kernel.body) if isinstance(stmt, Wait)]


@each_target
@each_kernel
def test_it_is_proved(template: Template, target: str) -> None:
    kernel = template.trace(target)

    assert (kernel.name, kernel.target.name) == (f"{template.name}_{target}", target)
    assert isinstance(verify(kernel).verdict, Proved)
    assert bool(inserted(kernel)) == (target == "gfx942")


@each_target
@each_kernel
def test_it_computes_its_formula_however_late_its_copies_complete(template: Template, target: str) -> None:
    kernel = template.trace(target)
    numbers = np.random.default_rng(7)
    arrays = [numbers.standard_normal(shape_of(each)).astype(each.dtype.numpy) for each in kernel.parameters]
    (found,) = interpret(kernel, *arrays, schedule=Schedule("late", 0, "lowest")).values()
    given = {each.name: array.astype(np.float64) for each, array in zip(kernel.parameters, arrays, strict=True)}

    assert prod(found.shape) > 100
    np.testing.assert_allclose(found.astype(np.float64), expected(template.name, given), rtol=2e-2, atol=2e-2)


@pytest.mark.share(24)
@each_kernel
def test_each_inserted_wait_is_needed_as_it_is(template: Template) -> None:
    kernel = template.trace("gfx942")
    named = {operator.name: operator for operator in waits.OPERATORS}
    changed = [*named["drop_wait"](kernel), *named["weaken_wait"](kernel)]

    assert len(changed) == 2 * len(inserted(kernel)) > 0
    for mutant in changed:
        verdict = verify(mutant.kernel).verdict
        assert isinstance(verdict, Refuted), str(mutant)
        assert verdict.counterexample.code in ("I30", "I31"), str(mutant)


@pytest.mark.nightly
@each_target
@each_kernel
def test_it_is_built(template: Template, target: str, tmp_path: Path) -> None:
    made = build(template.trace(target), target, tmp_path)

    assert made.code.read_bytes()[:4] == b"\x7fELF"
    assert ("s_waitcnt" in made.source_text) == (target == "gfx942")
