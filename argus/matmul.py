"""`matmul`: the shipped GEMM on torch's tensors, each schedule built and verified when it is first wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache, partial
from importlib import import_module
from threading import get_ident
from typing import Any, Literal, TypeVar, get_args, overload

from attrs import define, field, frozen

from argus.admission import Unproved, admitted
from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.dlpack import Exchangeable, is_foreign, returned, taken
from argus.kernels import batched, layouts
from argus.kernels.gemm import configuration, gemm, select
from argus.language import Template
from argus.operands import Tensor, Way, check, refuse, way
from argus.runtime.cuda import Loaded
from argus.tuned import forget as forget_searches

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
    "rows_64_128",
    "rows_64_192",
    "small",
    "narrow",
    "split_2",
    "split_4",
    "split_8",
]

CONFIGS: tuple[Config, ...] = get_args(Config)
_MOST_BOUND, _MOST_READY = 256, 4096
NARROW: Config = "narrow"
"""The schedule that reads element by element."""
FAMILIES: dict[str, Template] = {"gemm_nt": gemm} | {
    name: each
    for module in (layouts, batched)
    for name, each in vars(module).items()
    if isinstance(each, Template) and name == each.name
}
_UNFIT = {"E106", "E107", "E108", "E109", "E302", "E303", "E304", "E401", "E405", "E413", "E501"}
"""A schedule that is not there, not proved, or not for the shape: another may serve."""


T = TypeVar("T", bound=Tensor)
E = TypeVar("E", bound=Exchangeable)


@overload
def matmul(a: T, b: Tensor | Exchangeable, *, config: str | None = None, unproved: Unproved = "refuse") -> T: ...
@overload
def matmul(a: E, b: Tensor | Exchangeable, *, config: str | None = None, unproved: Unproved = "refuse") -> E: ...
def matmul(a: Any, b: Any, *, config: str | None = None, unproved: Unproved = "refuse") -> Any:
    """a @ b of matrices (M, K) and (K, N), bf16 or f16, on an H100 or H200: sums in fp32, a result of the same type.

    Either may be a batch, (Z, M, K) or (Z, K, N): all its products are one launch, and one matrix beside a batch stands
    for each. Other arrays with `__dlpack__` on CUDA devices, such as CuPy's and JAX's, pass through torch without a
    copy, and the result is of the kind of `a`.

    It runs on the current stream of the tensors' device and is not differentiated. Operands are read where they lie, by
    rows or by columns that begin at multiples of 16 bytes. Copied first is an operand that has neither, a batch `a`
    beside one `b` whose rows are not evenly apart, one `a` by columns beside a batch `b`, and, where rows of a dense
    operand would not begin so, one that is not dense. The first call of a schedule builds and verifies it (seconds),
    unless that lies in the cache ($ARGUS_CACHE_DIR); later calls of a shape take microseconds. Calls may be captured in
    a CUDA graph: they wait for nothing, and memory is torch's alone.

    config: the schedule; by default what a search has kept for the shape on this GPU, else what a model of costs
    expects to suit it. unproved: "allow" also runs what is neither proved nor refuted.

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
    check(a, b, gradients=lambda: _torch().is_grad_enabled())
    asked = None if config is None else (_known(config),)
    found = way(a, b)
    out = a.new_empty(found.shape)
    if 0 in found.shape:
        return out
    if found.sizes[-1] == 0:
        return out.zero_()
    torch, index = _torch(), a.device.index
    with nullcontext() if torch.cuda.current_device() == index else torch.cuda.device(a.device):
        named = asked or choices(found, torch.cuda.get_device_name(index))
        if NARROW in named:
            found = found.dense(a, b)
        launch = Launch(found.sizes, found.taken(a, b, out), torch.cuda.current_stream().cuda_stream)
        schedule = _first(found.family, named, index, unproved, launch)
    if not found.copies:
        if len(_READY) >= _MOST_READY:
            _READY.clear()
        _READY[key] = Ready(schedule, found, launch.strides, index, torch.cuda, _raw_stream(torch))
    return out


def choose(m: int, n: int, k: int, device: str = "") -> str:
    """The schedule for a shape on a GPU of this name, as `argus.kernels.gemm.select` has it."""
    return _kept(m, n, k, "bf16", device)[0]


@lru_cache(maxsize=4096)
def choices(found: Way, device: str) -> tuple[str, ...]:
    """For operands with K along their rows what a search has kept, before what the model chooses."""
    *batch, m, n, k = found.sizes
    turned = {"a_turned": found.a.turned, "b_turned": found.b.turned}
    if batch:
        return (batched.select(batch[0], m, n, k, **turned),)
    if any(turned.values()):
        return (layouts.select(m, n, k, **turned),)
    return _kept(m, n, k, "f16" if found.family.endswith("f16") else "bf16", device)


def _kept(m: int, n: int, k: int, dtype: str, device: str) -> tuple[str, ...]:
    """What a search has kept, if that is another schedule, before what the model chooses."""
    return tuple(dict.fromkeys((select(m, n, k, dtype, device=device), select(m, n, k, dtype))))


def kernel(config: str, family: str = "gemm_nt") -> Kernel:
    """The kernel of a schedule: C = A @ B^T. Raises ArgusError (E401) for a name that is none.

    family: `gemm_nt`, or another of `argus.kernels.layouts` and `argus.kernels.batched`.
    """
    template = FAMILIES[family]
    known = template.configs.get(config) or configuration(_known(config))
    return template.instance(known, config)


def _torch() -> Any:  # noqa: ANN401 reason: an extra, which only its own tensors bring in
    return import_module("torch")


def _known(config: str) -> str:
    found = configuration(config)
    if found is None or found.target.name != "sm_90a":
        refuse(f"there is no schedule `{config}`", f"choose one of {', '.join(CONFIGS)}")
    return config


# -- kernels on the device -----------------------------------------------------------------------------------


Places = tuple[int, int, int]
Sizes = tuple[int, ...]
Strides = tuple[tuple[int, ...], tuple[int, ...]]
Bound = tuple[Sizes, Places, Strides, int]
Operands = Callable[[], tuple[Tensor, Tensor, Tensor]]


@define
class Schedule:
    """A kernel in the context of a device, with launches of the shapes and addresses seen lately."""

    kernel: Loaded
    context: object
    _bound: dict[Bound, Callable[[], None]] = field(factory=dict["Bound", Callable[[], None]])

    def launch(
        self, sizes: Sizes, places: Places, strides: Strides, operands: Operands, stream: int
    ) -> Callable[[], None]:
        """Launch, and return what launches the same again.

        sizes: (Z,) M, N and K. places: the addresses of A, B and C. strides: of the operands, which with sizes and
        places make up what is launched. operands: the tensors, which a new place asks for.

        Raises ArgusError (E405) if the schedule does not take the shape.
        """
        key = (sizes, places, strides, stream)
        launch = self._bound.get(key)
        if launch is None:
            if len(self._bound) >= _MOST_BOUND:
                self._bound.clear()
            named = dict(zip("ABC", operands(), strict=True))
            launch = self._bound[key] = self.kernel.bind(
                named, dict(zip("ZMNK"[-len(sizes) :], sizes, strict=True)), stream
            )
        launch()
        return launch


@define
class Ready:
    """A product of matrices whose types, shapes, strides and device are known to be right: only addresses are new.

    stream: the current stream of a device, by its index.
    """

    schedule: Schedule
    way: Way
    strides: Strides
    index: int
    cuda: Any
    stream: Callable[[int], int]
    _threads: set[int] = field(factory=set[int])
    """In these the context is current whenever the device is."""
    _seen: dict[tuple[int, int, int, int], Callable[[], None]] = field(
        factory=dict["tuple[int, int, int, int]", Callable[[], None]]
    )
    """Launches by the addresses of A, B and C and the stream: all else is the same."""

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
        out = a.new_empty(self.way.shape)
        key = a.data_ptr(), b.data_ptr(), out.data_ptr(), self.stream(self.index)
        launch = self._seen.get(key)
        if launch is not None:
            launch()
            return out
        if len(self._seen) >= _MOST_BOUND:
            self._seen.clear()
        *places, stream = key
        taken = partial(self.way.taken, a, b, out)
        self._seen[key] = self.schedule.launch(
            self.way.sizes, (places[0], places[1], places[2]), self.strides, taken, stream
        )
        return out


_READY: dict[tuple[object, ...], Ready] = {}


def _alike(a: Tensor, b: Tensor, config: str | None, unproved: str) -> tuple[object, ...]:
    """What calls have in common that differ in addresses alone; nothing in common where an operand is no tensor."""
    try:
        return a.shape, b.shape, a.stride(), b.stride(), a.dtype, b.dtype, a.device, b.device, config, unproved
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
    forget_searches()


@frozen
class Launch:
    """sizes: (Z,) M, N and K. operands: A, B and C."""

    sizes: Sizes
    operands: tuple[Tensor, Tensor, Tensor]
    stream: int

    @property
    def strides(self) -> Strides:
        left, right, _ = self.operands
        return left.stride(), right.stride()


def _first(family: str, named: Sequence[str], device: int, unproved: Unproved, launch: Launch) -> Schedule:
    """Launch the first of these schedules that there is and that takes the shape: all but the last are but hints."""
    *hints, last = named
    for hint in hints:
        try:
            return _launched(family, hint, device, unproved, launch)
        except ArgusError as problem:
            if problem.diagnostic.code not in _UNFIT:
                raise
    return _launched(family, last, device, unproved, launch)


def _launched(family: str, config: str, device: int, unproved: Unproved, launch: Launch) -> Schedule:
    schedule = _loaded(family, config, device, unproved)
    # A thread in which torch has done nothing yet has no context.
    schedule.kernel.driver.call("cuCtxSetCurrent", schedule.context)
    left, right, out = launch.operands
    places = left.data_ptr(), right.data_ptr(), out.data_ptr()
    schedule.launch(launch.sizes, places, launch.strides, lambda: launch.operands, launch.stream)
    return schedule


@cache
def _loaded(family: str, config: str, device: int, unproved: Unproved) -> Schedule:
    """The schedule on a device, its code loaded there. Raises ArgusError as `admitted` does."""
    about = _torch().cuda.get_device_properties(device)
    return Schedule(*admitted(kernel(config, family), FAMILIES[family], device, about, unproved))
