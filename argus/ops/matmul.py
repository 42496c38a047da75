"""`matmul`: the shipped GEMM kernels on torch tensors; each schedule is built and verified on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, TypeVar, get_args, overload

from attrs import evolve

from argus.core.ir import Kernel
from argus.kernels import batched, gemm_f32, layouts, streamk, streamk_cdna3
from argus.kernels.gemm import configuration, gemm
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.stream_cdna3 import Cdna3Stream
from argus.language import Template
from argus.ops import choice_f32, choice_gfx942
from argus.ops.attention_gradient import is_wanted
from argus.ops.broadcast import folded, is_folded, shape_of
from argus.ops.call_path import Candidate, Plan, Traced, launch, load_candidate
from argus.ops.choice import candidates, stored_or_modelled
from argus.ops.choice_f32 import precision_of
from argus.ops.choice_unaligned import is_for_unaligned, unaligned
from argus.ops.element_types import no_kernel
from argus.ops.operands import OperandPlan, Tensor, check, plan_operands, refuse
from argus.ops.targets import Kernels, kernels_for, name_of, target_of
from argus.ops.traced import registered, traceable
from argus.runtime.dlpack import Exchangeable, from_torch, is_foreign, to_torch
from argus.runtime.launch_gate import Unproved
from argus.runtime.launches import Product, store
from argus.runtime.tuning_db import clear_cache as clear_tuning_cache

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
    "narrow_32",
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
FAMILIES: dict[str, Template] = {"gemm_nt": gemm} | {
    name: each
    for module in (layouts, batched)
    for name, each in vars(module).items()
    if isinstance(each, Template) and name == each.name
}

_ROWS = "gemm_nt"
SINGLE = "_f32"
"""The last part of the names of families of f32."""
T = TypeVar("T", bound=Tensor)
E = TypeVar("E", bound=Exchangeable)


@overload
def matmul(a: T, b: Tensor | Exchangeable, *, config: str | None = None, unproved: Unproved = "refuse") -> T: ...
@overload
def matmul(a: E, b: Tensor | Exchangeable, *, config: str | None = None, unproved: Unproved = "refuse") -> E: ...
@traceable
def matmul(a: Any, b: Any, *, config: str | None = None, unproved: Unproved = "refuse") -> Any:
    """a @ b for matrices (M, K) and (K, N), bf16 or f16, on an H100, H200 or MI300X; sums in fp32, a result of
    the same type. Of f32 on an H100 or H200: six products of parts in bf16, as exact as sums in f32, three after
    `torch.set_float32_matmul_precision("high")`, one after "medium"; of few rows or columns, plain FMAs. Infinities
    become NaN, and parts below 2^-133 are lost.

    Either may be a batch, (Z, M, K) or (Z, K, N): all its products are one launch, and a single matrix is multiplied
    with each of the other's batch. Vectors and further axes of products broadcast as in `torch.matmul`: an operand
    whose axes of products are expanded is copied, but for one matrix alone. Other arrays with `__dlpack__` on GPUs,
    such as CuPy's and JAX's, pass through torch without a copy, and the result has the type of `a`.

    It runs on the current stream of the tensors' device. Its gradients, of any order, are products of the same kind.
    Operands are read in place if they are row-major or column-major with rows (or columns) aligned to 16 bytes. An
    operand is copied first if it is neither; if it is a batch `a`, `b` is one matrix, and the rows of `a` are not
    evenly spaced; if it is one column-major `a` and `b` is a batch; or if it is not dense where the rows of a dense
    operand would not be aligned.
    Rows of dense matrices that are not aligned are copied into longer rows by a launch of the same program, which is
    proved as a whole, or read element by element, as is expected to be faster.
    On an MI300X an operand is copied unless it is dense, row-major or column-major with columns aligned to 16 bytes.
    The first call of a schedule builds and verifies it (seconds) unless it is cached ($ARGUS_CACHE_DIR); later calls of
    a shape take microseconds. Calls may be captured in a CUDA graph: they never synchronise, and allocate only torch
    memory.

    config: the schedule; by default the one that a search has stored for the shape on this GPU, else the cost model's
    choice. unproved: "allow" also runs a kernel that is neither proved nor refuted.

    Raises:
        ArgusError: E401 for operands that are not such matrices, E405 if a schedule does not support the shape, E406 to
            E409 for errors on the GPU, E413 for a kernel without a proof, E414 for operands that no kernel for this GPU
            multiplies, E303 without a compiler.
    """
    key: tuple[object, ...]
    try:
        key = a.shape, b.shape, a.stride(), b.stride(), a.dtype, b.dtype, a.device, b.device, config, unproved
        precision = precision_of(a.dtype)
        if precision:
            key = *key, precision
    except (AttributeError, RuntimeError):  # not tensors: nothing to look up
        key, precision = (), ""
    ready = _READY.get(key)
    if ready is not None:
        places = a.data_ptr(), b.data_ptr()
        if not ((places[0] | places[1]) % 16 or a.requires_grad or b.requires_grad):
            return ready((a, b), places)
    if is_foreign(a) or is_foreign(b):
        own = [to_torch(each, name) if is_foreign(each) else each for each, name in ((a, "a"), (b, "b"))]
        found = matmul(*own, config=config, unproved=unproved)
        return from_torch(found, a) if is_foreign(a) else found
    check(a, b)
    if is_wanted(a, b):
        return registered("matmul")(a, b, config=config, unproved=unproved)
    if not is_folded(a, b):
        found = matmul(*folded(a, b), config=config, unproved=unproved)
        return found.reshape(shape_of(a.shape, b.shape))
    kernels = kernels_for("matmul of f32", a) if precision else kernels_for("matmul", a)
    asked = None if config is None else (config if precision else _known(config, target_of(a)),)
    if precision:
        kernels = evolve(kernels, choose=partial(kernels.choose, precision=precision))
    found = plan_operands(a, b, strided=kernels.strided)
    if 0 in found.shape or found.sizes[-1] == 0:
        return a.new_empty(found.shape).zero_()
    out, product = launch(_plan(found, a, b, kernels, asked), (a, b), unproved)
    if key and product is not None:
        store(_READY, key, product)
    return out


def _plan(found: OperandPlan, a: Tensor, b: Tensor, kernels: Kernels, asked: tuple[str, ...] | None) -> Plan:
    if asked and not _multiplies(found.family, asked[0]):
        raise no_kernel("matmul", target_of(a), f"for operands such as those of `{found.family}`")
    named = asked or choices(found, name_of(a), kernels)
    if found.family.endswith(SINGLE):
        pass  # the plan is dense
    elif any(isinstance(configuration(each), Narrow) or is_for_unaligned(each) for each in named):
        found = found.dense(a, b)
    sizes = tuple(zip("ZMNK"[-len(found.sizes) :], found.sizes, strict=True))
    tried = [candidate(found.family, each) for each in named]
    return Plan(((found.shape, a.dtype),), sizes, tried, partial(_named, found), ("A", "B"))


def _multiplies(family: str, config: str) -> bool:
    """Whether a schedule multiplies the operands of a family."""
    if family.endswith(SINGLE):
        return choice_f32.instance(family, config) is not None
    known = configuration(config)
    if known is None:
        return unaligned(family, config) is not None or _in_parts(family, config) is not None
    return family == _ROWS or not isinstance(known, layouts.ROWS_ALONE)


def _named(found: OperandPlan, a: Tensor, b: Tensor, out: Tensor) -> Mapping[str, Tensor]:
    return dict(zip("ABC", found.arranged(a, b, out), strict=True))


def choices(found: OperandPlan, device: str, kernels: Kernels) -> tuple[str, ...]:
    """The configurations to try in order for these operands on a GPU of this name."""
    transposed = {"a_transposed": found.a.transposed, "b_transposed": found.b.transposed}
    return kernels.choose(found.family, found.sizes, **transposed, device=device)


def choose(m: int, n: int, k: int, device: str = "") -> str:
    """The configuration that `argus.ops.choice.select` chooses for a bf16 product on a GPU of this name."""
    return stored_or_modelled(m, n, k, "bf16", device)[0]


def kernel(config: str, family: str = "gemm_nt") -> Kernel:
    """The kernel of a schedule, for any target: C = A @ B^T. Raises ArgusError (E401) for an unknown name.

    family: `gemm_nt`, or another of `argus.kernels.layouts` and `argus.kernels.batched`.
    """
    template = FAMILIES[family]
    known = template.configs.get(config) or configuration(_known(config))
    return template.instance(known, config)


def _known(config: str, target: str | None = None) -> str:
    """The name of a schedule for a target, or of any. Raises ArgusError (E401) for any other."""
    found = configuration(config) or _stream(config)
    other = unaligned(_ROWS, config)
    if other is not None and target in (None, "sm_90a"):
        return config
    if found is None or target not in (None, found.target.name):
        named = [name for name, each in gemm.configs.items() if each.target.name == (target or "sm_90a")]
        refuse(f"there is no schedule `{config}`", f"choose one of {', '.join(named)}")
    return config


# -- kernels on the device -----------------------------------------------------------------------------------


_READY: dict[tuple[object, ...], Product] = {}
"""Products by what equal calls share: all properties of the operands but their addresses."""


def clear_cache() -> None:
    """Drop the loaded kernels and the choices read from the tuning database."""
    _READY.clear()
    load_candidate.cache_clear()
    for chosen in (candidates, choice_f32.candidates, choice_gfx942.candidates):
        chosen.cache_clear()
    clear_tuning_cache()


def candidate(family: str, config: str) -> Candidate:
    """A configuration of a family, as a candidate for the call path."""
    return Candidate(family, config, partial(_traced, family, config))


def _traced(family: str, config: str) -> Traced:
    """The kernel or program of a configuration, and the module that defines it."""
    if family.endswith(SINGLE):
        found = choice_f32.instance(family, config)
        if found is None:
            refuse(f"there is no schedule `{config}` for `{family}`", f"choose one of {', '.join(gemm_f32.CONFIGS)}")
        return found
    made = unaligned(family, config)
    if made is not None:
        template, name = made
        return template.trace(name), template.function.__module__
    program = _in_parts(family, config)
    return (kernel(config, family), FAMILIES[family].function.__module__) if program is None else program


def _in_parts(family: str, config: str) -> Traced | None:
    """The stream-K program of a configuration for the operands of a family, and its module; None if there is none."""
    found = _stream(config)
    program = streamk_cdna3.FAMILIES.get(family) if isinstance(found, Cdna3Stream) else streamk.gemm_streams
    if found is None or program is None or (isinstance(found, streamk.Stream) and family != _ROWS):
        return None
    return program.instance(found, config), program.function.__module__


def _stream(config: str) -> streamk.Stream | Cdna3Stream | None:
    """The stream-K configuration of a name, for any target."""
    return streamk.configuration(config) or streamk_cdna3.configuration(config)
