"""`matmul`: the shipped GEMM on torch's tensors, each schedule built and verified when it is first wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from importlib import import_module
from threading import get_ident
from typing import Any, Literal, NoReturn, Protocol, Self, TypeVar, get_args, overload

from attrs import define, field, frozen

from argus import tuned
from argus.core.diagnostic import ArgusError, Diagnostic
from argus.core.ir import Kernel
from argus.dlpack import Exchangeable, is_foreign, returned, taken
from argus.kernels.gemm import configuration, gemm, select
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
_MOST_BOUND, _MOST_READY = 256, 4096
_UNFIT = {"E106", "E107", "E108", "E109", "E302", "E303", "E304", "E401", "E405", "E413", "E501"}
"""A schedule that is not there, not proved, or not for the shape: another may serve."""


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
E = TypeVar("E", bound=Exchangeable)


@overload
def matmul(a: T, b: Tensor | Exchangeable, *, config: str | None = None, unproved: Unproved = "refuse") -> T: ...
@overload
def matmul(a: E, b: Tensor | Exchangeable, *, config: str | None = None, unproved: Unproved = "refuse") -> E: ...
def matmul(a: Any, b: Any, *, config: str | None = None, unproved: Unproved = "refuse") -> Any:
    """a @ b of bf16 matrices (M, K) and (K, N) on an H100 or H200: sums in fp32, the result in bf16, row-major.

    Other arrays with `__dlpack__` on CUDA devices, such as CuPy's and JAX's, pass through torch without a copy, and the
    result is of the kind of `a`.

    It runs on the current stream of the tensors' device and is not differentiated. `a` is read row by row and `b`
    column by column: `b = weight.T` of a contiguous weight (N, K) costs nothing, any other `b`, an `a` that is not
    contiguous, or one that begins within 16 bytes is copied first. The first call of a schedule builds and verifies
    it (seconds), unless that lies in the cache ($ARGUS_CACHE_DIR); later calls of a shape take microseconds. Calls may
    be captured in a CUDA graph: they wait for nothing, and memory is torch's alone.

    config: the schedule; by default what a search has kept for the shape on this GPU, else what a model of costs
    expects to suit it. unproved: "allow" also runs what is neither proved nor
    refuted.

    Raises:
        ArgusError: E401 for operands that are not such matrices, E405 if a schedule does not take the shape, E406 to
            E409 for what goes wrong on the GPU, E413 for a kernel without a proof, E303 without a compiler.
    """
    key = _alike(a, b, config, unproved)
    ready = _READY.get(key)
    if ready is not None and not (a.requires_grad or b.requires_grad or (a.data_ptr() | b.data_ptr()) % 16):
        return ready.product(a, b)
    if is_foreign(a) or is_foreign(b):
        own = [taken(each, name) if is_foreign(each) else each for each, name in ((a, "a"), (b, "b"))]
        found = matmul(*own, config=config, unproved=unproved)
        return returned(found, a) if is_foreign(a) else found
    m, n, k = _extents(a, b)
    left, right = _rows(a), _rows(b.mT)
    asked = None if config is None else (_known(config),)
    out = a.new_empty((m, n))
    if k == 0:
        return out.zero_()
    if m * n == 0:
        return out
    torch, index = _torch(), a.device.index
    with nullcontext() if torch.cuda.current_device() == index else torch.cuda.device(a.device):
        named = asked or choices(m, n, k, torch.cuda.get_device_name(index))
        stream = torch.cuda.current_stream().cuda_stream
        schedule = _first(named, index, unproved, Launch((m, n, k), (left, right, out), stream))
    if left is a and right.data_ptr() == b.data_ptr():
        if len(_READY) >= _MOST_READY:
            _READY.clear()
        _READY[key] = Ready(schedule, (m, n, k), index, torch.cuda, _raw_stream(torch))
    return out


def choose(m: int, n: int, k: int, device: str = "") -> str:
    """The schedule for a shape on a GPU of this name, as `argus.kernels.gemm.select` has it."""
    return choices(m, n, k, device)[0]


@lru_cache(maxsize=4096)
def choices(m: int, n: int, k: int, device: str) -> tuple[str, ...]:
    """What a search has kept, if that is another schedule, before what the model chooses."""
    return tuple(dict.fromkeys((select(m, n, k, device=device), select(m, n, k))))


def kernel(config: str) -> Kernel:
    """The kernel of a schedule: C = A @ B^T. Raises ArgusError (E401) for a name that is none."""
    known = configuration(_known(config))
    assert known is not None
    return gemm.instance(known, config)


def _torch() -> Any:  # noqa: ANN401 reason: an extra, which only its own tensors bring in
    return import_module("torch")


# -- operands ------------------------------------------------------------------------------------------------


def _extents(a: Tensor, b: Tensor) -> tuple[int, int, int]:
    """M, N and K. Raises ArgusError (E401) for what is not a product of two bf16 matrices on one GPU."""
    for name, tensor in (("a", a), ("b", b)):
        if not hasattr(tensor, "data_ptr"):
            _refuse(f"`{name}` is no tensor of torch, found {type(tensor).__name__}", "pass arrays on CUDA")
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


def _known(config: str) -> str:
    found = configuration(config)
    if found is None or found.target.name != "sm_90a":
        _refuse(f"there is no schedule `{config}`", f"choose one of {', '.join(CONFIGS)}")
    return config


def _refuse(message: str, advice: str) -> NoReturn:
    raise ArgusError(Diagnostic("E401", "error", f"matmul: {message}", help=advice))


# -- kernels on the device -----------------------------------------------------------------------------------


Places = tuple[int, int, int]
Bound = tuple[tuple[int, int, int], Places, int]
Operands = Callable[[], tuple[Tensor, Tensor, Tensor]]


@define
class Schedule:
    """A kernel in the context of a device, with launches of the shapes and addresses seen lately."""

    kernel: Loaded
    context: object
    _bound: dict[Bound, Callable[[], None]] = field(factory=dict["Bound", Callable[[], None]])

    def launch(self, sizes: tuple[int, int, int], places: Places, operands: Operands, stream: int) -> None:
        """sizes: M, N and K. places: the addresses of A, B and C. operands: the tensors, which a new place asks for.

        Raises ArgusError (E405) if the schedule does not take the shape.
        """
        key = (sizes, places, stream)
        launch = self._bound.get(key)
        if launch is None:
            if len(self._bound) >= _MOST_BOUND:
                self._bound.clear()
            named = dict(zip("ABC", operands(), strict=True))
            launch = self._bound[key] = self.kernel.bind(named, dict(zip("MNK", sizes, strict=True)), stream)
        launch()


@define
class Ready:
    """A product of matrices whose types, shapes, strides and device are known to be right: only addresses are new.

    sizes: M, N and K. stream: the current stream of a device, by its index.
    """

    schedule: Schedule
    sizes: tuple[int, int, int]
    index: int
    cuda: Any
    stream: Callable[[int], int]
    _threads: set[int] = field(factory=set[int])
    """In these the context is current whenever the device is."""

    def product(self, a: T, b: T) -> T:
        if self.cuda.current_device() != self.index:
            with self.cuda.device(self.index):
                return self._product(a, b)
        return self._product(a, b)

    def _product(self, a: T, b: T) -> T:
        thread = get_ident()
        if thread not in self._threads:
            self.schedule.kernel.driver.call("cuCtxSetCurrent", self.schedule.context)
            self._threads.add(thread)
        out = a.new_empty(self.sizes[:2])
        places = a.data_ptr(), b.data_ptr(), out.data_ptr()
        self.schedule.launch(self.sizes, places, lambda: (a, b.mT, out), self.stream(self.index))
        return out


_READY: dict[tuple[object, ...], Ready] = {}


def _alike(a: Tensor, b: Tensor, config: str | None, unproved: str) -> tuple[object, ...]:
    """What calls have in common that differ in addresses alone; nothing in common where an operand is no tensor."""
    try:
        places = a.device.index, b.device.index, a.is_cuda, b.is_cuda
        return a.shape, b.shape, a.stride(), b.stride(), a.dtype, b.dtype, *places, config, unproved
    except (AttributeError, RuntimeError):
        return ()


def _raw_stream(torch: Any) -> Callable[[int], int]:  # noqa: ANN401 reason: an extra
    """The current stream's handle, without an object around it where torch offers that."""
    direct = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    return direct or (lambda _index: torch.cuda.current_stream().cuda_stream)


def forget() -> None:
    """Let go of kernels that are loaded, and of what searches have kept."""
    _READY.clear()
    _loaded.cache_clear()
    choices.cache_clear()
    tuned.forget()


@frozen
class Launch:
    """sizes: M, N and K. operands: A, B and C, row-major."""

    sizes: tuple[int, int, int]
    operands: tuple[Tensor, Tensor, Tensor]
    stream: int


def _first(named: Sequence[str], device: int, unproved: Unproved, launch: Launch) -> Schedule:
    """Launch the first of these schedules that there is and that takes the shape: all but the last are but hints."""
    *hints, last = named
    for hint in hints:
        try:
            return _launched(hint, device, unproved, launch)
        except ArgusError as problem:
            if problem.diagnostic.code not in _UNFIT:
                raise
    return _launched(last, device, unproved, launch)


def _launched(config: str, device: int, unproved: Unproved, launch: Launch) -> Schedule:
    schedule = _loaded(config, device, unproved)
    # A thread in which torch has done nothing yet has no context.
    schedule.kernel.driver.call("cuCtxSetCurrent", schedule.context)
    left, right, out = launch.operands
    places = left.data_ptr(), right.data_ptr(), out.data_ptr()
    schedule.launch(launch.sizes, places, lambda: launch.operands, launch.stream)
    return schedule


@cache
def _loaded(config: str, device: int, unproved: Unproved) -> Schedule:
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
