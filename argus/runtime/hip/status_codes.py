"""Translates status codes of the HIP runtime to error codes, messages and repairs.

The statuses are those of `hipError_t` [HIP runtime API, error handling], by the names that `hipGetErrorName` returns.
"""

from __future__ import annotations

from collections.abc import Mapping

from argus.runtime.gpu.status import StatusMeaning

_ABSENT = StatusMeaning("E406", "no GPU to run on", "look at `rocminfo`, or run it in the interpreter")
_FAILED = StatusMeaning("E409", "the kernel failed while it ran", "run it with `argus validate --level machine`")
_REFUSED = StatusMeaning("E405", "the HIP runtime refuses", "check sizes, tensors and that the GPU is free")
_DAMAGED = StatusMeaning("E405", "the code of the kernel is damaged", "build it again")
_OTHER = StatusMeaning("E407", "the code is for another GPU", "run it on an MI300X, MI300A or MI325X (gfx942)")
_LATE = StatusMeaning("E410", "the kernel did not finish", "verify it: a deadlock is refuted with its cycle of waits")
_LARGE = StatusMeaning("E405", "a block of the kernel does not fit on the GPU", "use fewer registers or less LDS")
_CAPTURED = StatusMeaning("E405", "the capture of a graph does not allow this", "make the same call before the capture")
_MEMORY = StatusMeaning("E408", "the GPU has no memory left", "choose smaller sizes, or free GPU memory")

MEANINGS: Mapping[str, StatusMeaning] = {
    **dict.fromkeys(("NoDevice", "InvalidDevice", "InsufficientDriver", "NotInitialized", "Deinitialized"), _ABSENT),
    **dict.fromkeys(("OutOfMemory", "MemoryAllocation"), _MEMORY),
    "NoBinaryForGpu": _OTHER,
    **dict.fromkeys(("InvalidImage", "InvalidKernelFile", "InvalidSource", "NotFound", "FileNotFound"), _DAMAGED),
    **dict.fromkeys(("IllegalAddress", "LaunchFailure", "Assert", "ECCNotCorrectable"), _FAILED),
    **dict.fromkeys(("LaunchTimeOut", "Timeout"), _LATE),
    **dict.fromkeys(("LaunchOutOfResources", "CooperativeLaunchTooLarge"), _LARGE),
    "CapturedEvent": _CAPTURED,
}


def meaning_of(status: str) -> StatusMeaning:
    """The meaning of a status such as `hipErrorOutOfMemory`; for one that is not listed, that HIP refuses."""
    plain = status.removeprefix("hipError")
    return _CAPTURED if plain.startswith("StreamCapture") else MEANINGS.get(plain, _REFUSED)
