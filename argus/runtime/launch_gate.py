"""What may be launched: a kernel that is proved, its code on a GPU of its kind. The one gate of all user entries."""

from __future__ import annotations

from typing import Any, Literal

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel, Program
from argus.runtime.cuda.device import Device
from argus.runtime.cuda.driver import Driver, installed
from argus.runtime.cuda.launch import Loaded, load
from argus.runtime.kernel_cache import built, built_program, judged, judged_program
from argus.runtime.programs import LoadedProgram, load_program

Unproved = Literal["refuse", "allow"]


def admitted(
    traced: Kernel | Program,
    module: str,
    device: int,
    about: Any,  # noqa: ANN401 reason: torch's properties of a device
    unproved: Unproved,
) -> tuple[Loaded | LoadedProgram, object]:
    """A kernel or a program, its code loaded on a device, and the device's context.

    module: that it is of. device: its number; about: its name, and its capability as `major` and `minor`. unproved:
    "allow" also loads what is neither proved nor refuted.
    Raises ArgusError: E407 on a GPU of another kind, E413 unless it is proved, or that is not asked for.
    """
    used = _driver(about)
    if isinstance(traced, Program):
        _judge(traced.name, module, judged_program(traced).verdict, unproved)
        description = built_program(traced)
        context = _context(used, device)
        return load_program(description, used), context
    _judge(traced.name, module, judged(traced).verdict, unproved)
    description = built(traced)
    context = _context(used, device)
    return load(description, used), context


def _driver(about: Any) -> Driver:  # noqa: ANN401 reason: torch's properties of a device
    used = installed()
    Device(used, about.name, (about.major, about.minor), "").check_runs("sm_90a")
    return used


def _judge(name: str, module: str, verdict: str, unproved: Unproved) -> None:
    if verdict == "refuted" or (verdict != "proved" and unproved == "refuse"):
        message = f"`{name}` is {verdict}, and is not launched"
        advice = f"verify it where a solver is installed (`argus verify {module}:{name}`)"
        raise ArgusError(Diagnostic("E413", "error", message, help=advice, kernel=name))


def _context(used: Driver, device: int) -> object:
    context = used.call("cuDevicePrimaryCtxRetain", used.call("cuDeviceGet", device))
    used.call("cuCtxSetCurrent", context)
    return context
