"""Translates status codes of the CUDA driver to error codes, messages and repairs.

The statuses are those of `CUresult` [CUDA driver API, 6.1], without their prefix.
"""

from __future__ import annotations

from collections.abc import Mapping

from argus.runtime.gpu.status import StatusMeaning

_PREFIX = "CUDA_ERROR_"


_ABSENT = StatusMeaning("E406", "no GPU to run on", "run it on a machine with a GPU, or in the interpreter")
_FAILED = StatusMeaning("E409", "the kernel failed while it ran", "run it under compute-sanitizer to see which access")
_FAULTY = StatusMeaning("E409", "the GPU reports a hardware fault", "look at `nvidia-smi -q`, and use another GPU")
_REFUSED = StatusMeaning("E405", "the CUDA driver refuses", "check sizes, tensors and that the GPU is free")
_TAKEN = StatusMeaning("E405", "another process has exclusive use of the GPU", "wait for it, or use another GPU")
_DAMAGED = StatusMeaning("E405", "the code of the kernel is damaged", "build it again")
_OTHER = StatusMeaning("E407", "the code is for another GPU", "build it for this GPU, or run it on an H100 or H200")
_LATE = StatusMeaning("E410", "the kernel did not finish", "verify it: a deadlock is refuted with its cycle of waits")
_LOST = StatusMeaning(
    "E405", "the context of this thread is gone", "use another process: an earlier fault destroyed it"
)
_LARGE = StatusMeaning(
    "E405",
    "a block of the kernel does not fit on the GPU",
    "use fewer registers, less shared memory or smaller clusters",
)
_CAPTURED = StatusMeaning(
    "E405", "the capture of a CUDA graph does not allow this", "make the same call once before the capture"
)
_SHARED = StatusMeaning("E406", "no GPU to run on: the MPS service does not answer", "restart the MPS service")

MEANINGS: Mapping[str, StatusMeaning] = {
    **dict.fromkeys(("NO_DEVICE", "INSUFFICIENT_DRIVER", "STUB_LIBRARY", "SYSTEM_NOT_READY"), _ABSENT),
    **dict.fromkeys(("SYSTEM_DRIVER_MISMATCH", "COMPAT_NOT_SUPPORTED_ON_DEVICE", "INVALID_DEVICE"), _ABSENT),
    **dict.fromkeys(("CALL_REQUIRES_NEWER_DRIVER", "DEVICE_NOT_LICENSED", "NOT_INITIALIZED", "DEINITIALIZED"), _ABSENT),
    **dict.fromkeys(("MPS_CONNECTION_FAILED", "MPS_RPC_FAILURE", "MPS_SERVER_NOT_READY"), _SHARED),
    **dict.fromkeys(("MPS_MAX_CLIENTS_REACHED", "MPS_MAX_CONNECTIONS_REACHED", "MPS_CLIENT_TERMINATED"), _SHARED),
    **dict.fromkeys(("NO_BINARY_FOR_GPU", "UNSUPPORTED_PTX_VERSION", "INVALID_PTX"), _OTHER),
    **dict.fromkeys(("INVALID_IMAGE", "INVALID_SOURCE", "NOT_FOUND", "FUNCTION_NOT_LOADED"), _DAMAGED),
    "OUT_OF_MEMORY": StatusMeaning("E408", "the GPU has no memory left", "choose smaller sizes, or free GPU memory"),
    **dict.fromkeys(("ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC"), _FAILED),
    **dict.fromkeys(("ILLEGAL_INSTRUCTION", "HARDWARE_STACK_ERROR", "ASSERT", "LAUNCH_FAILED"), _FAILED),
    **dict.fromkeys(("ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE", "CONTAINED", "EXTERNAL_DEVICE"), _FAULTY),
    **dict.fromkeys(("LAUNCH_TIMEOUT", "TIMEOUT"), _LATE),
    **dict.fromkeys(("LAUNCH_OUT_OF_RESOURCES", "INVALID_CLUSTER_SIZE", "COOPERATIVE_LAUNCH_TOO_LARGE"), _LARGE),
    **dict.fromkeys(("INVALID_CONTEXT", "CONTEXT_IS_DESTROYED"), _LOST),
    "DEVICE_UNAVAILABLE": _TAKEN,
    "CAPTURED_EVENT": _CAPTURED,
}


def meaning_of(status: str) -> StatusMeaning:
    """The meaning of a status, with or without its prefix; for one that is not listed, that the driver refuses."""
    plain = status.removeprefix(_PREFIX)
    return _CAPTURED if plain.startswith("STREAM_CAPTURE_") else MEANINGS.get(plain, _REFUSED)
