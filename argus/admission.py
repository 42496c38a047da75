"""What may be launched: a kernel that is proved, its code on a GPU of its kind. The one gate of all user entries."""

from __future__ import annotations

from typing import Any, Literal

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.dsl.kernel import Template
from argus.core.ir import Kernel
from argus.prebuilt import built, judged
from argus.runtime.cuda import Loaded, load
from argus.runtime.device import Device
from argus.runtime.driver import installed

Unproved = Literal["refuse", "allow"]


def admitted(
    traced: Kernel,
    template: Template,
    device: int,
    about: Any,  # noqa: ANN401 reason: torch's properties of a device
    unproved: Unproved,
) -> tuple[Loaded, object]:
    """The kernel, its code loaded on a device, and the device's context.

    template: which the kernel is an instance of. device: its number; about: its name, and its capability as `major` and
    `minor`. unproved: "allow" also loads what is neither proved nor refuted.
    Raises ArgusError: E407 on a GPU of another kind, E413 unless the kernel is proved, or that is not asked for.
    """
    used = installed()
    Device(used, about.name, (about.major, about.minor)).check_runs("sm_90a")
    verdict = judged(traced).verdict
    if verdict == "refuted" or (verdict != "proved" and unproved == "refuse"):
        message = f"`{traced.name}` is {verdict}, and is not launched"
        place = template.function.__module__
        advice = f"verify it where a solver is installed (`argus verify {place}:{traced.name}`)"
        raise ArgusError(Diagnostic("E413", "error", message, help=advice, kernel=traced.name))
    description = built(traced)
    context = used.call("cuDevicePrimaryCtxRetain", used.call("cuDeviceGet", device))
    used.call("cuCtxSetCurrent", context)
    return load(description, used), context
