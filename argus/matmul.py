"""`matmul`: the shipped GEMM on torch's tensors, each schedule built and verified when it is first wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from typing import Any, Literal, NoReturn, Protocol, Self, TypeVar, get_args

from attrs import define, field

from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.kernels.gemm import gemm, select
from argus.prebuilt import built, judged
from argus.runtime.cuda import Loaded, load
from argus.runtime.device import Device
from argus.runtime.driver import installed

Config = Literal[
    "cooperative",
    "super_tiled",
    "clustered",
    "clustered_bands",
    "columns_224",
    "columns_192",
    "columns_128",
    "columns_64",
    "skinny",
    "skinny_64",
    "pingpong",
    "small",
    "narrow",
]
Unproved = Literal["refuse", "allow"]

CONFIGS: tuple[Config, ...] = get_args(Config)
_MOST_BOUND = 256


class Tensor(Protocol):
    """A tensor of torch, as far as it is used."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> object: ...
    @property
    def device(self) -> Any: ...  # noqa: ANN401 reason: torch's
    @property
    def is_cuda(self) -> bool: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def mT(self) -> Self: ...  # noqa: N802 reason: torch's name
    def data_ptr(self) -> int: ...
    def stride(self) -> tuple[int, ...]: ...
    def is_contiguous(self) -> bool: ...
    def contiguous(self) -> Self: ...
    def clone(self) -> Self: ...
    def zero_(self) -> Self: ...
    def new_empty(self, shape: tuple[int, ...]) -> Self: ...


T = TypeVar("T", bound=Tensor)


def matmul(a: T, b: T, *, config: Config | None = None, unproved: Unproved = "refuse") -> T:
    """a @ b of bf16 matrices (M, K) and (K, N) on an H100 or H200: sums in fp32, the result in bf16, row-major.

    It runs on the current stream of the tensors' device and is not differentiated. `a` is read row by row and `b`
    column by column: `b = weight.T` of a contiguous weight (N, K) costs nothing, any other `b`, an `a` that is not
    contiguous, or one that begins within 16 bytes is copied first. The first call of a schedule builds and verifies
    it (seconds), unless that lies in the cache ($ARGUS_CACHE_DIR); later calls of a shape take microseconds.

    config: the schedule; by default one that suits the shape. unproved: "allow" also runs what is neither proved nor
    refuted.

    Raises:
        ArgusError: E401 for operands that are not such matrices, E405 if a schedule does not take the shape, E406 to
            E409 for what goes wrong on the GPU, E413 for a kernel without a proof, E303 without a compiler.
    """
    m, n, k = _extents(a, b)
    left, right = _rows(a), _rows(b.mT)
    chosen = _known(config) if config is not None else choose(m, n, k)
    out = a.new_empty((m, n))
    if k == 0:
        return out.zero_()
    if m * n == 0:
        return out
    cuda = _torch().cuda
    with nullcontext() if cuda.current_device() == a.device.index else cuda.device(a.device):
        schedule = _loaded(chosen, a.device.index, unproved)
        schedule.launch(m, n, k, {"A": left, "B": right, "C": out}, cuda.current_stream().cuda_stream)
    return out


def choose(m: int, n: int, k: int) -> Config:
    """The schedule for a shape, as `argus.kernels.gemm.select` has it."""
    return _known(select(m, n, k))


def kernel(config: Config) -> Kernel:
    """The kernel of a schedule: C = A @ B^T."""
    return gemm.trace(config)


def _torch() -> Any:  # noqa: ANN401 reason: an extra, which only its own tensors bring in
    return import_module("torch")


# -- operands ------------------------------------------------------------------------------------------------


def _extents(a: Tensor, b: Tensor) -> tuple[int, int, int]:
    """M, N and K. Raises ArgusError (E401) for what is not a product of two bf16 matrices on one GPU."""
    for name, tensor in (("a", a), ("b", b)):
        if not hasattr(tensor, "data_ptr"):
            _refuse(f"`{name}` is no tensor of torch, found {type(tensor).__name__}", "pass `torch.Tensor`s")
        if str(tensor.dtype) != "torch.bfloat16":
            _refuse(
                f"`{name}` expects elements of type torch.bfloat16, found {tensor.dtype}", "convert it: `.bfloat16()`"
            )
        if len(tensor.shape) != 2:
            _refuse(
                f"`{name}` expects 2 axes, found {len(tensor.shape)}", "flatten the leading axes: `.flatten(0, -2)`"
            )
        if not tensor.is_cuda:
            _refuse(f"`{name}` is on {tensor.device}, expected a CUDA device", "move it: `.cuda()`")
        if tensor.requires_grad and _torch().is_grad_enabled():
            _refuse(f"`{name}` requires a gradient, which this product has not", "use `torch.no_grad()` or `.detach()`")
    if a.device != b.device:
        _refuse(f"`a` is on {a.device} and `b` on {b.device}", "move one to the other's device")
    if a.shape[1] != b.shape[0]:
        _refuse(
            f"`a` is {tuple(a.shape)} and `b` {tuple(b.shape)}: `b` expects {a.shape[1]} rows",
            "pass a (M, K) and b (K, N)",
        )
    return a.shape[0], b.shape[1], a.shape[1]


def _rows(tensor: T) -> T:
    """The matrix row-major from a multiple of 16 bytes, copied if it is not so."""
    held = tensor.contiguous()
    return held.clone() if held.data_ptr() % 16 else held


def _known(config: str) -> Config:
    if config not in CONFIGS:
        _refuse(f"there is no schedule `{config}`", f"choose one of {', '.join(CONFIGS)}")
    return config


def _refuse(message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic("E401", "error", f"matmul: {message}", help=advice))


# -- kernels on the device -----------------------------------------------------------------------------------


@define
class Schedule:
    """A kernel in the context of a device, with launches of the shapes and addresses seen lately."""

    kernel: Loaded
    context: object
    _bound: dict[tuple[int, ...], Callable[[], None]] = field(factory=dict[tuple[int, ...], Callable[[], None]])

    def launch(self, m: int, n: int, k: int, tensors: Mapping[str, Tensor], stream: int) -> None:
        """Raises ArgusError (E405) if the schedule does not take the shape."""
        key = (m, n, k, stream, *(tensor.data_ptr() for tensor in tensors.values()))
        launch = self._bound.get(key)
        if launch is None:
            if len(self._bound) >= _MOST_BOUND:
                self._bound.clear()
            launch = self._bound[key] = self.kernel.bind(tensors, {"M": m, "N": n, "K": k}, stream)
        # A thread in which torch has done nothing yet has no context.
        self.kernel.driver.call("cuCtxSetCurrent", self.context)
        launch()


@cache
def _loaded(config: Config, device: int, unproved: Unproved) -> Schedule:
    """The schedule on a device, its code loaded there.

    Raises ArgusError: E407 on a GPU of another kind, E413 unless the kernel is proved, or that is not asked for.
    """
    used = installed()
    about = _torch().cuda.get_device_properties(device)
    Device(used, about.name, (about.major, about.minor)).check_runs("sm_90a")
    traced = kernel(config)
    verdict = judged(traced).verdict
    if verdict == "refuted" or (verdict != "proved" and unproved == "refuse"):
        message = f"`{traced.name}` is {verdict}, and is not launched"
        advice = f"verify it where a solver is installed (`argus verify argus.kernels.gemm:{traced.name}`)"
        raise ArgusError(Diagnostic("E413", "error", message, help=advice, kernel=traced.name))
    description = built(traced)
    context = used.call("cuDevicePrimaryCtxRetain", used.call("cuDeviceGet", device))
    used.call("cuCtxSetCurrent", context)
    return Schedule(load(description, used), context)
