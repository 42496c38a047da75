"""The launch gate of all user calls: loads only kernels that are proved, or allowed unproved, on a matching GPU."""

from __future__ import annotations

from typing import Any, Literal

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel, Program
from argus.runtime.gpu.device import Device, architecture
from argus.runtime.gpu.driver import GpuDriver
from argus.runtime.gpu.find import find_driver
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.runtime.kernel_cache import (
    UNVERIFIED,
    build_cached,
    build_program_cached,
    verify_cached,
    verify_program_cached,
)
from argus.runtime.programs import LoadedProgram, load_program

Unproved = Literal["refuse", "allow"]


def load_verified(
    traced: Kernel | Program,
    module: str,
    device: int,
    about: Any,  # noqa: ANN401 reason: torch's properties of a device
    unproved: Unproved,
) -> tuple[LoadedKernel | LoadedProgram, object]:
    """A kernel or program with its code loaded on a device, and the device's context.

    module: the module that defines it, for messages. device: its number; about: its name, and its compute capability as
    `major` and `minor`, or its `gcnArchName`. unproved: "refuse" requires a proof; "allow" also loads a kernel that is
    not refuted.
    Raises ArgusError: E407 on a GPU of another kind, E413 for a kernel that `unproved` excludes.
    """
    used = _driver(about, traced.target.name)
    require_verified(traced, module, unproved)
    if isinstance(traced, Program):
        description = build_program_cached(traced)
        context = _context(used, device)
        return load_program(description, used), context
    description = build_cached(traced)
    context = _context(used, device)
    return load(description, used), context


def _driver(about: Any, target: str) -> GpuDriver:  # noqa: ANN401 reason: torch's properties of a device
    """The library that drives a device of torch's, which must run the target's code."""
    found = architecture(about)
    used = find_driver(found)
    Device(used, about.name, found, "").check_runs(target)
    return used


def require_verified(traced: Kernel | Program, module: str, unproved: Unproved) -> None:
    """Raises ArgusError (E413) for a kernel or a program that `unproved` excludes; module: as of `load_verified`."""
    name = traced.name
    found = verify_program_cached(traced) if isinstance(traced, Program) else verify_cached(traced)
    verdict = found.verdict
    if verdict == "refuted" or (verdict != "proved" and unproved == "refuse"):
        message = f"`{name}` is {verdict} and therefore not launched"
        advice = (
            f"see why with `argus verify {module}:{name}`"
            if verdict != UNVERIFIED.verdict
            else "install a solver on this machine, which believes no other machine's proof (`pip install z3-solver`)"
        )
        raise ArgusError(Diagnostic("E413", "error", message, help=advice, kernel=name))


def _context(used: GpuDriver, device: int) -> object:
    context = used.context_of(device)
    used.enter(context)
    return context
