"""`matmul`: the shipped GEMM on torch's tensors, each schedule built and verified when it is first wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args, overload

from argus.core.diagnostic import ArgusError
from argus.core.ir import Kernel
from argus.kernels import batched, layouts, streamk
from argus.kernels.gemm import configuration, gemm, select
from argus.language import Template
from argus.ops.operands import Tensor, Way, check, refuse, way
from argus.runtime.dlpack import Exchangeable, is_foreign, returned, taken
from argus.runtime.launch_gate import Unproved, admitted, admitted_program
from argus.runtime.launches import Call, Product, Schedule, keep, machine, product_of
from argus.runtime.programs import Workspace
from argus.runtime.tuning_db import forget as forget_searches

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
    "skinny_40",
    "skinny_64",
    "skinny_72",
    "skinny_104",
    "skinny_136",
    "skinny_152",
    "pingpong",
    "rows_64_128",
    "rows_64_192",
    "small",
    "narrow",
    "split_2",
    "split_4",
    "split_8",
    "shares_16",
    "shares_32",
    "shares_48",
    "shares_64",
    "shares_80",
    "shares_112",
]

CONFIGS: tuple[Config, ...] = get_args(Config)
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


_ROWS = "gemm_nt"
"""The family of operands with K along their rows, which programs multiply too."""
_TYPES = {"f32": "float32"}
"""Types of elements as torch calls them."""
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
    key: tuple[object, ...]
    try:
        key = a.shape, b.shape, a.stride(), b.stride(), a.dtype, b.dtype, a.device, b.device, config, unproved
    except (AttributeError, RuntimeError):  # no tensors: these have nothing in common
        key = ()
    ready = _READY.get(key)
    if ready is not None:
        places = a.data_ptr(), b.data_ptr()
        if not ((places[0] | places[1]) % 16 or a.requires_grad or b.requires_grad):
            return ready((a, b), places)
    if is_foreign(a) or is_foreign(b):
        own = [taken(each, name) if is_foreign(each) else each for each, name in ((a, "a"), (b, "b"))]
        found = matmul(*own, config=config, unproved=unproved)
        return returned(found, a) if is_foreign(a) else found
    check(a, b, gradients=lambda: _torch().is_grad_enabled())
    asked = None if config is None else (_known(config),)
    found = way(a, b)
    if 0 in found.shape or found.sizes[-1] == 0:
        return a.new_empty(found.shape).zero_()
    torch, index = _torch(), a.device.index
    used = machine(torch, index)
    with nullcontext() if used.current() == index else used.on(index):
        named = asked or choices(found, torch.cuda.get_device_name(index))
        if NARROW in named:
            found = found.dense(a, b)
        out = used.result(a, found.shape, a.dtype)
        tensors = _named(found, a, b, out)
        sizes = zip("ZMNK"[-len(found.sizes) :], found.sizes, strict=True)
        call = Call(tuple(sizes), (tensors["A"].stride(), tensors["B"].stride()))

        def launch(schedule: Schedule) -> None:
            given = {**tensors, **used.room(a, _typed(schedule.spaces(call)))}
            places = tuple(each.data_ptr() for each in given.values())
            schedule.launch(call, places, lambda: given, used.stream(index))

        schedule = _first(found.family, named, index, unproved, launch)
    if key and not found.copies:
        result, spaces = (found.shape, a.dtype), _typed(schedule.spaces(call))
        keep(_READY, key, product_of(schedule, call, used, result, partial(_named, found), spaces))
    return out


def _typed(spaces: Sequence[Workspace]) -> tuple[tuple[Workspace, object], ...]:
    """Each with torch's type of its elements."""
    return tuple((each, getattr(_torch(), _TYPES[each.dtype])) for each in spaces)


def _named(found: Way, a: Tensor, b: Tensor, out: Tensor) -> Mapping[str, Tensor]:
    return dict(zip("ABC", found.taken(a, b, out), strict=True))


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
    kept = _kept(m, n, k, "f16" if found.family.endswith("f16") else "bf16", device)
    parts = streamk.select(m, n, k) if found.family == _ROWS and len(kept) == 1 else None
    return kept if parts is None else (parts, *kept)


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
    found = configuration(config) or streamk.configuration(config)
    if found is None or found.target.name != "sm_90a":
        refuse(f"there is no schedule `{config}`", f"choose one of {', '.join(CONFIGS)}")
    return config


# -- kernels on the device -----------------------------------------------------------------------------------


_READY: dict[tuple[object, ...], Product] = {}
"""By what calls have in common that differ in addresses alone."""


def forget() -> None:
    """Let go of kernels that are loaded, and of what searches have kept."""
    _READY.clear()
    _loaded.cache_clear()
    choices.cache_clear()
    forget_searches()


def _first(
    family: str, named: Sequence[str], device: int, unproved: Unproved, launch: Callable[[Schedule], None]
) -> Schedule:
    """Launch the first of these schedules that there is and that takes the shape: all but the last are but hints."""

    def launched(config: str) -> Schedule:
        schedule = _loaded(family, config, device, unproved)
        schedule.enter()
        launch(schedule)
        return schedule

    *hints, last = named
    for hint in hints:
        try:
            return launched(hint)
        except ArgusError as problem:
            if problem.diagnostic.code not in _UNFIT:
                raise
    return launched(last)


@cache
def _loaded(family: str, config: str, device: int, unproved: Unproved) -> Schedule:
    """The schedule on a device, its code loaded there. Raises ArgusError as `admitted` does."""
    about = _torch().cuda.get_device_properties(device)
    stream = streamk.configuration(config) if family == _ROWS else None
    if stream is not None:
        program = streamk.gemm_streams.instance(stream, config)
        return Schedule(*admitted_program(program, streamk.__name__, device, about, unproved))
    return Schedule(*admitted(kernel(config, family), FAMILIES[family], device, about, unproved))
