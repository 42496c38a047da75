"""Runs a kernel on random inputs, on the local GPU or in the interpreter, and compares it with its reference."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Buffer, Copy, Kernel, Program, walk
from argus.core.walk import evaluate
from argus.interp.interpret import bind
from argus.interp.memory.loading import outputs
from argus.interp.programs import promised_integers_of_program
from argus.interp.run import promised_integers
from argus.interp.values.drawn_inputs import drawn_integers
from argus.runtime.gpu.device import Device
from argus.runtime.gpu.find import find_gpu
from argus.runtime.kernel_cache import build_cached, build_program_cached
from argus.runtime.processes.isolated import run_worker
from argus.runtime.processes.request import Request, Result, Tensor
from argus.runtime.run_references import compare_run
from argus.runtime.run_sizes import sizes_of
from argus.runtime.sandbox.user_reference import Oracle
from argus.verifier.api import interpret
from argus.verifier.reference import Comparison, compare_with_interpreter

Array = npt.NDArray[Any]
On = Literal["auto", "gpu", "interpreter"]
Launch = Callable[[Request, Path, float], Result]

MOST_WORK = 1 << 31
"""The largest product of all sizes that is interpreted: about ten seconds for a GEMM."""
LAUNCHES = 10
"""How many launches are timed, after the one whose outputs are compared."""


@frozen
class RunResult:
    """The result of a run.

    gpu: its name, empty for the interpreter. why: why the interpreter was used. milliseconds: of each timed launch, or
    of the one run of the interpreter. comparison: None where there is no reference for any output. uncompared: the
    outputs without a reference.
    """

    kernel: str
    target: str
    sizes: Mapping[str, int]
    seed: int
    gpu: str
    why: str
    milliseconds: tuple[float, ...]
    arrays: Mapping[str, Array]
    comparison: Comparison | None
    uncompared: tuple[str, ...] = ()


def run(
    kernel: Kernel | Program,
    sizes: Mapping[str, int] | None = None,
    *,
    seed: int = 0,
    on: On = "auto",
    seconds: float = 60.0,
    gpu: Callable[[], Device] = find_gpu,
    launch: Launch = run_worker,
    reference: Oracle | None = None,
    results: Sequence[str] = (),
) -> RunResult:
    """Run a kernel or a program on random inputs, and compare its outputs with a reference.

    The reference is the function given, else what the claims determine, else the proved formulas, else the interpreter.
    sizes: by name; where absent 256, or what the assumptions ask. on: "auto" uses the GPU if it runs the kernel's code,
    else the interpreter. seconds: the time limit on the GPU. gpu: finds the GPU; launch: runs
    the worker process. reference: computes the outputs from float64 inputs by name. results: those of the proof.

    Raises:
        ArgusError: E402 for sizes that violate an assumption, E405 to E410 for errors on the GPU, E411 for sizes too
            large for the interpreter, E701 for a size that the kernel does not have, E903 for a reference that fails,
            E3xx where the kernel's code cannot be built.
    """
    chosen = sizes_of(kernel, sizes or {})
    why = "as asked" if on == "interpreter" else _reason_not_on_gpu(kernel, gpu, required=on == "gpu")
    if why and prod(chosen.values()) > MOST_WORK:
        raise too_large(kernel, chosen, why)
    arrays = inputs_of(kernel, chosen, seed)
    if why:
        start = perf_counter()
        made = interpret(kernel, *arrays.values(), tags=False, given_sizes=chosen)
        result = Result("", (1000 * (perf_counter() - start),))
    else:
        made, result = _on_gpu(kernel, chosen, arrays, seconds, launch)
    comparison, uncompared = compare_run(kernel, arrays, made, seed, reference, results, chosen)
    if comparison is None and not why and prod(chosen.values()) <= MOST_WORK:
        comparison = compare_with_interpreter(made, interpret(kernel, *arrays.values(), tags=False, given_sizes=chosen))
        uncompared = ()
    return RunResult(
        kernel.name,
        kernel.target.name,
        chosen,
        seed,
        result.device,
        why,
        result.milliseconds,
        made,
        comparison,
        uncompared,
    )


def runs_on_gpu(kernel: Kernel | Program, gpu: Callable[[], Device] = find_gpu) -> bool:
    """Whether the local GPU runs the kernel's code."""
    return not _reason_not_on_gpu(kernel, gpu, required=False)


def _reason_not_on_gpu(kernel: Kernel | Program, gpu: Callable[[], Device], *, required: bool) -> str:
    """Why the kernel cannot run on the local GPU; empty if it can. required: raise instead."""
    try:
        gpu().check_runs(kernel.target.name)
    except ArgusError as problem:
        if required:
            raise
        return problem.diagnostic.message
    return ""


def too_large(kernel: Kernel | Program, sizes: Mapping[str, int], why: str) -> ArgusError:
    shown = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    message = f"`{kernel.name}` with {shown} is too large to interpret: the product of its sizes is over {MOST_WORK}"
    return ArgusError(
        Diagnostic(
            "E411",
            "error",
            message,
            facts=(("interpreter", why),),
            help="choose smaller sizes, or run it on a GPU",
            kernel=kernel.name,
        )
    )


def inputs_of(kernel: Kernel | Program, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """One array per parameter, by name, in order: random where the kernel reads it. Raises ArgusError E402, E408."""
    random = np.random.default_rng(seed)
    shapes = {buffer: _shape(kernel, buffer, sizes) for buffer in kernel.parameters}
    bind(kernel, [np.broadcast_to(np.zeros((), buffer.dtype.numpy), shape) for buffer, shape in shapes.items()], sizes)
    read = tensors_read(kernel)
    try:
        made = {buffer.name: _contents(buffer, shape, random, buffer in read) for buffer, shape in shapes.items()}
        return {**made, **_promised(kernel, sizes, seed)}
    except MemoryError:
        message = f"the inputs of `{kernel.name}` do not fit into the memory of this machine"
        raise ArgusError(Diagnostic("E408", "error", message, help="choose smaller sizes")) from None


def _promised(kernel: Kernel | Program, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Integer tensors that satisfy their promises, by the caller's names."""
    if isinstance(kernel, Kernel):
        return promised_integers(kernel, sizes, seed)
    return promised_integers_of_program(kernel, sizes, seed)


def _shape(kernel: Kernel | Program, buffer: Buffer, sizes: Mapping[str, int]) -> tuple[int, ...]:
    env = {symbol: sizes[symbol.name] for symbol in kernel.sizes}
    return tuple(int(cast(int, evaluate(extent, env))) for extent in buffer.shape)


def _contents(buffer: Buffer, shape: tuple[int, ...], random: np.random.Generator, read: bool) -> Array:
    if not read:
        return np.zeros(shape, buffer.dtype.numpy)
    if buffer.dtype.family == "float":
        return random.standard_normal(shape, np.float32).astype(buffer.dtype.numpy)
    return drawn_integers(buffer.dtype, shape, random)


def tensors_read(kernel: Kernel | Program) -> set[Buffer]:
    """The parameters whose initial contents matter: those that are read, or never written."""
    if isinstance(kernel, Program):
        steps = kernel.launches
        read = {step.arguments[buffer.name] for step in steps for buffer in tensors_read(step.kernel)}
        return read | (set(kernel.parameters) - set(tensors_written(kernel)))
    sources = {stmt.source.buffer for stmt in walk(kernel.body) if isinstance(stmt, Copy)}
    written = set(outputs(kernel))
    return {buffer for buffer in kernel.parameters if buffer in sources or buffer not in written}


def tensors_written(kernel: Kernel | Program) -> tuple[Buffer, ...]:
    """The parameters that a kernel, or some launch of a program, writes."""
    if isinstance(kernel, Kernel):
        return tuple(outputs(kernel))
    stored = {step.arguments[own.name] for step in kernel.launches for own in outputs(step.kernel)}
    return tuple(buffer for buffer in kernel.parameters if buffer in stored)


def _on_gpu(
    kernel: Kernel | Program, sizes: Mapping[str, int], arrays: Mapping[str, Array], seconds: float, launch: Launch
) -> tuple[dict[str, Array], Result]:
    """The outputs by name, and times. Raises ArgusError like the launch; E302 if its files cannot be written."""
    read, written = tensors_read(kernel), tensors_written(kernel)
    tensors = tuple(
        Tensor(each.name, arrays[each.name].shape, each.dtype.bits // 8, each in read, each in written)
        for each in kernel.parameters
    )
    whole = isinstance(kernel, Program)
    description = build_program_cached(kernel) if whole else build_cached(kernel)
    request = Request(str(description), kernel.target.name, tensors, dict(sizes), LAUNCHES, whole)
    try:
        with tempfile.TemporaryDirectory(prefix="argus-run-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            for tensor in tensors:
                if tensor.read:
                    arrays[tensor.name].tofile(tensor.file(folder))
            result = launch(request, folder, seconds)
            made = {buffer.name: _read_output(buffer, arrays[buffer.name], folder) for buffer in written}
    except OSError as problem:
        message = f"cannot pass tensors to the process that runs `{kernel.name}`: {problem.strerror or problem}"
        raise ArgusError(Diagnostic("E302", "error", message, help="make room in the temporary folder")) from problem
    return made, result


def _read_output(buffer: Buffer, like: Array, folder: Path) -> Array:
    return np.fromfile(folder / f"{buffer.name}.bin", buffer.dtype.numpy).reshape(like.shape)
