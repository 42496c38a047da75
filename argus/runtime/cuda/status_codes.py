"""What each status of the CUDA driver is to a user: a code, what has happened, and what to do about it.

The statuses are those of `CUresult` [CUDA driver API, 6.1], without their prefix.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

_PREFIX = "CUDA_ERROR_"


@frozen
class Answer:
    code: str
    message: str
    help: str


_ABSENT = Answer("E406", "no GPU to run on", "run it on a machine with a GPU, or in the interpreter")
_FAILED = Answer("E409", "the kernel failed while it ran", "run it under compute-sanitizer to see which access")
_FAULTY = Answer("E409", "the GPU itself reports a fault", "look at `nvidia-smi -q`, and use another GPU")
_REFUSED = Answer("E405", "the CUDA driver refuses", "check sizes, tensors and that the GPU is free")
_TAKEN = Answer("E405", "the GPU is in use by another process alone", "wait for it, or use another GPU")
_DAMAGED = Answer("E405", "the code of the kernel is damaged", "build it again")
_OTHER = Answer("E407", "the code is for another GPU", "build it for this GPU, or run it on an H100 or H200")
_LATE = Answer("E410", "the kernel did not finish", "verify it: a wait that nobody answers is refuted with its cycle")
_LOST = Answer("E405", "the context of this thread is gone", "begin anew in another process: a fault has ended it")
_LARGE = Answer(
    "E405", "the GPU has no room for a block of the kernel", "hold fewer registers, less shared memory or fewer blocks"
)
_CAPTURED = Answer(
    "E405", "the capture of a CUDA graph does not allow this", "make the same call once before the capture"
)
_SHARED = Answer("E406", "no GPU to run on, as its sharing service does not answer", "restart the MPS service")

ANSWERS: Mapping[str, Answer] = {
    **dict.fromkeys(("NO_DEVICE", "INSUFFICIENT_DRIVER", "STUB_LIBRARY", "SYSTEM_NOT_READY"), _ABSENT),
    **dict.fromkeys(("SYSTEM_DRIVER_MISMATCH", "COMPAT_NOT_SUPPORTED_ON_DEVICE", "INVALID_DEVICE"), _ABSENT),
    **dict.fromkeys(("CALL_REQUIRES_NEWER_DRIVER", "DEVICE_NOT_LICENSED", "NOT_INITIALIZED", "DEINITIALIZED"), _ABSENT),
    **dict.fromkeys(("MPS_CONNECTION_FAILED", "MPS_RPC_FAILURE", "MPS_SERVER_NOT_READY"), _SHARED),
    **dict.fromkeys(("MPS_MAX_CLIENTS_REACHED", "MPS_MAX_CONNECTIONS_REACHED", "MPS_CLIENT_TERMINATED"), _SHARED),
    **dict.fromkeys(("NO_BINARY_FOR_GPU", "UNSUPPORTED_PTX_VERSION", "INVALID_PTX"), _OTHER),
    **dict.fromkeys(("INVALID_IMAGE", "INVALID_SOURCE", "NOT_FOUND", "FUNCTION_NOT_LOADED"), _DAMAGED),
    "OUT_OF_MEMORY": Answer("E408", "the GPU has no memory left", "choose smaller sizes, or free what others hold"),
    **dict.fromkeys(("ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC"), _FAILED),
    **dict.fromkeys(("ILLEGAL_INSTRUCTION", "HARDWARE_STACK_ERROR", "ASSERT", "LAUNCH_FAILED"), _FAILED),
    **dict.fromkeys(("ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE", "CONTAINED", "EXTERNAL_DEVICE"), _FAULTY),
    **dict.fromkeys(("LAUNCH_TIMEOUT", "TIMEOUT"), _LATE),
    **dict.fromkeys(("LAUNCH_OUT_OF_RESOURCES", "INVALID_CLUSTER_SIZE", "COOPERATIVE_LAUNCH_TOO_LARGE"), _LARGE),
    **dict.fromkeys(("INVALID_CONTEXT", "CONTEXT_IS_DESTROYED"), _LOST),
    "DEVICE_UNAVAILABLE": _TAKEN,
    "CAPTURED_EVENT": _CAPTURED,
}


def answer_to(status: str) -> Answer:
    """Of a status with or without its prefix; of one that is not listed, that the driver refuses."""
    plain = status.removeprefix(_PREFIX)
    return _CAPTURED if plain.startswith("STREAM_CAPTURE_") else ANSWERS.get(plain, _REFUSED)
