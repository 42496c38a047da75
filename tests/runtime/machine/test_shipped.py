"""Every shipped gfx942 kernel: all its instructions are modelled, and its machine code agrees with the interpreter."""

from __future__ import annotations

import pytest

from argus.runtime.cpu.validate import chosen_sizes
from argus.runtime.machine.validate import validate_code
from benchmarks.cases import kernels_of, shipped_configurations
from benchmarks.machine_code import code_of, steps_of
from benchmarks.shipped import families, is_of_another_type
from tests.interp.gfx942.referenced import NAMES


@pytest.mark.nightly(16)
@pytest.mark.parametrize(("family", "config"), list(shipped_configurations()))
def test_machine_code_of_a_shipped_kernel_agrees_with_the_interpreter(family: str, config: str) -> None:
    """Of a family that differs from another in its type alone, in fewer runs: instructions are those of the type."""
    known = dict(families())
    repeated = is_of_another_type(family, known)
    for kernel in kernels_of(known[family].trace(config)):
        sizes = chosen_sizes(kernel)[:2]
        found = validate_code(kernel, sizes[-1:], seeds=1) if repeated else validate_code(kernel, sizes, seeds=2)

        assert found.right, [trial for trial in found.trials if not trial.right][:1]
        assert all(trial.elements for trial in found.trials)
        assert {step.instruction.row.name for step in steps_of(code_of(kernel))} <= NAMES


def test_there_are_shipped_kernels_for_gfx942() -> None:
    assert {"gemm", "gemm_split", "attention_128"} <= {family for family, _ in shipped_configurations()}
