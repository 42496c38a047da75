"""Compare the machine code of gfx942 kernels with the interpreter, as `argus.runtime.cpu.validate` does with texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from time import perf_counter

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.runtime.cpu.validate import (
    SEEDS,
    Emitted,
    Trial,
    Validation,
    chosen_sizes,
    every_text,
    seeds_of,
    small_inputs,
    trial_of,
)
from argus.runtime.machine.launch import MachineCode, compiled, run_code


def validate_code(
    kernel: Kernel,
    sizes: Sequence[Mapping[str, int]] = (),
    *,
    seeds: int | Sequence[int] = SEEDS,
    made: Emitted | None = None,
) -> Validation:
    """Execute a kernel's machine code at each of the sizes (some that meet its assumptions, if none are given) and each
    seed, of inputs and of the order of waves. made: a text, if it is none that the emitter makes.

    Raises ArgusError: E303 and E304 as the compiler does, E402 for sizes that violate an assumption, E421 for a kernel
    of another target, E501 for one that is not emitted or interpreted, E502 for an instruction that is not modelled.
    """
    if kernel.target.name != "gfx942":
        raise no_machine_code(kernel, "validate the emitted text: leave `--level machine` out")
    texts = every_text(kernel) if made is None else (made,)
    start = perf_counter()
    codes = [(text, compiled(kernel, text.text, text.info)) for text in texts]
    built = perf_counter() - start
    trials = [
        _trial(text, code, chosen, seed)
        for (text, code), chosen, seed in product(codes, sizes or chosen_sizes(kernel), seeds_of(seeds))
    ]
    return Validation(kernel.name, kernel.target.name, tuple(trials), (built, perf_counter() - start - built))


def no_machine_code(kernel: Kernel, repair: str) -> ArgusError:
    """E421."""
    message = f"no machine code of `{kernel.name}` can be executed: it is for `{kernel.target}`"
    return ArgusError(Diagnostic("E421", "error", message, help=repair, kernel=kernel.name))


def _trial(text: Emitted, code: MachineCode, sizes: Mapping[str, int], seed: int) -> Trial:
    arrays = small_inputs(text.kernel, sizes, seed)
    found, done = run_code(code, text.kernel, sizes, arrays, seed)
    findings = tuple(code.finding(each) for each in done.findings)
    return trial_of(text, sizes, seed, arrays, found, findings)
