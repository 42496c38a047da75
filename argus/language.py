"""The kernel language: re-exports everything that a kernel file imports.

See docs/quickstart.md for a first kernel and docs/language.md for the meaning of each construct.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from argus.core.atoms.gfx942 import (
    buffer_load,
    buffer_load_lds,
    buffer_store,
    ds_read,
    ds_read_b64,
    ds_read_b128,
    ds_write,
    ds_write_b64,
    ds_write_b128,
    mfma_f32_16x16x16_bf16,
    mfma_f32_16x16x16_f16,
    mfma_f32_16x16x32_bf8_bf8,
    mfma_f32_16x16x32_bf8_fp8,
    mfma_f32_16x16x32_fp8_bf8,
    mfma_f32_16x16x32_fp8_fp8,
    mfma_f32_32x32x8_bf16,
    mfma_f32_32x32x8_f16,
    mfma_f32_32x32x16_bf8_bf8,
    mfma_f32_32x32x16_bf8_fp8,
    mfma_f32_32x32x16_fp8_bf8,
    mfma_f32_32x32x16_fp8_fp8,
    mfma_i32_16x16x32_i8,
    mfma_i32_32x32x16_i8,
)
from argus.core.atoms.sm_90a.warp import mma_m16n8k16_bf16, mma_m16n8k16_f16
from argus.core.dsl.claims import (
    assert_covers,
    assert_distinct,
    assert_equal,
    assert_order,
    assert_relation,
    assert_written_once,
    assume,
    earlier,
    tag,
)
from argus.core.dsl.clusters import cluster, tma
from argus.core.dsl.contributions import assert_products, every
from argus.core.dsl.control import block_id, loop, otherwise, remap_xcd, when
from argus.core.dsl.copies.choose_atom import (
    global_load,
    global_store,
    ld_global_b8,
    ld_global_b16,
    ld_global_b32,
    st_global_b16,
)
from argus.core.dsl.copies.copy import copy, load
from argus.core.dsl.copies.thread_layouts import (
    all_to_each,
    first_lane,
    first_thread,
    last_lane,
    replicated,
    runs,
    spread,
)
from argus.core.dsl.formulas import (
    argmax,
    argmin,
    assert_equals,
    before,
    elements,
    greatest,
    least,
    product,
    total,
    wrapped,
)
from argus.core.dsl.handles import Bool, Int, IntLike, ceil_div, eq
from argus.core.dsl.integers import promise, scalar
from argus.core.dsl.kernel import Template, kernel
from argus.core.dsl.launches import workspace
from argus.core.dsl.products import mfma, mma, warp_mma
from argus.core.dsl.programs import ProgramTemplate, program
from argus.core.dsl.roles import elected, role, warp, warpgroup, warpgroups, warps
from argus.core.dsl.statements import (
    arrive,
    early_reads,
    fence,
    free_order,
    interleave,
    no_pdl,
    own_checks,
    priority,
    reset,
    sched_barrier,
    shared,
    sync,
)
from argus.core.dsl.sync.barriers import Barrier, barrier
from argus.core.dsl.sync.persistent import Persistent, persistent
from argus.core.dsl.sync.queues import bulk, bulk_copy, cp_async, ldmatrix, lds, stmatrix, vmem, wgmma
from argus.core.dsl.sync.ring import Ring, Slot
from argus.core.dsl.sync.segments import Segments, segments
from argus.core.dsl.sync.tile_orders import (
    Order,
    by_columns,
    by_rows,
    curved,
    longest_first,
    span,
    super_tiled,
)
from argus.core.dsl.sync.turns import Turns
from argus.core.dsl.sync.waves import wave
from argus.core.dsl.tensor_maps import TensorMap, tensor_map
from argus.core.dsl.tiles.arithmetic import (
    ceil,
    cos,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    fma,
    log,
    log1p,
    log2,
    philox,
    power,
    reciprocal,
    round_bf16,
    round_even,
    rsqrt,
    sign,
    sin,
    sqrt,
    tanh,
    tanh_accurate,
    where,
)
from argus.core.dsl.tiles.fragments import Fragment, add, maximum, maximum_nan, minimum, minimum_nan, mul
from argus.core.dsl.tiles.masks import Mask
from argus.core.dsl.tiles.reductions import thread
from argus.core.dsl.tiles.registers import ones, registers, zeros
from argus.core.dsl.tiles.rescaling import rescale
from argus.core.dsl.values import Value
from argus.core.dsl.views import Tensor, unflatten
from argus.core.dtype import DType, bf16, e4m3, e4m3fnuz, e5m2fnuz, f16, f32, i8, i32, i64
from argus.core.ir import File as RegisterFile
from argus.core.layout import TV, Layout, Swizzle
from argus.core.target import gfx942, sm_90a
from argus.core.tiling import TiledMma, WarpgroupMma
from argus.deprecated import moved

if TYPE_CHECKING:
    from argus.core.dsl.statements import no_pdl as begin_late
else:

    def __getattr__(name: str) -> object:
        """A name that moved, see `argus.deprecated`; hidden from type checkers, which report unknown names."""
        return moved(__name__, name)


__all__ = [
    "TV",
    "Barrier",
    "Bool",
    "DType",
    "Fragment",
    "Int",
    "IntLike",
    "Layout",
    "Mask",
    "Order",
    "Persistent",
    "ProgramTemplate",
    "RegisterFile",
    "Ring",
    "Segments",
    "Slot",
    "Swizzle",
    "Template",
    "Tensor",
    "TensorMap",
    "TiledMma",
    "Turns",
    "Value",
    "WarpgroupMma",
    "add",
    "all_to_each",
    "argmax",
    "argmin",
    "arrive",
    "assert_covers",
    "assert_distinct",
    "assert_equal",
    "assert_equals",
    "assert_order",
    "assert_products",
    "assert_relation",
    "assert_written_once",
    "assume",
    "barrier",
    "before",
    "begin_late",
    "bf16",
    "block_id",
    "buffer_load",
    "buffer_load_lds",
    "buffer_store",
    "bulk",
    "bulk_copy",
    "by_columns",
    "by_rows",
    "ceil",
    "ceil_div",
    "cluster",
    "copy",
    "cos",
    "cp_async",
    "curved",
    "ds_read",
    "ds_read_b64",
    "ds_read_b128",
    "ds_write",
    "ds_write_b64",
    "ds_write_b128",
    "e4m3",
    "e4m3fnuz",
    "e5m2fnuz",
    "earlier",
    "early_reads",
    "elected",
    "elements",
    "eq",
    "erf",
    "every",
    "exp",
    "exp2",
    "expm1",
    "f16",
    "f32",
    "fence",
    "first_lane",
    "first_thread",
    "floor",
    "fma",
    "free_order",
    "gfx942",
    "global_load",
    "global_store",
    "greatest",
    "i8",
    "i32",
    "i64",
    "interleave",
    "kernel",
    "last_lane",
    "ld_global_b8",
    "ld_global_b16",
    "ld_global_b32",
    "ldmatrix",
    "lds",
    "least",
    "load",
    "log",
    "log1p",
    "log2",
    "longest_first",
    "loop",
    "maximum",
    "maximum_nan",
    "mfma",
    "mfma_f32_16x16x16_bf16",
    "mfma_f32_16x16x16_f16",
    "mfma_f32_16x16x32_bf8_bf8",
    "mfma_f32_16x16x32_bf8_fp8",
    "mfma_f32_16x16x32_fp8_bf8",
    "mfma_f32_16x16x32_fp8_fp8",
    "mfma_f32_32x32x8_bf16",
    "mfma_f32_32x32x8_f16",
    "mfma_f32_32x32x16_bf8_bf8",
    "mfma_f32_32x32x16_bf8_fp8",
    "mfma_f32_32x32x16_fp8_bf8",
    "mfma_f32_32x32x16_fp8_fp8",
    "mfma_i32_16x16x32_i8",
    "mfma_i32_32x32x16_i8",
    "minimum",
    "minimum_nan",
    "mma",
    "mma_m16n8k16_bf16",
    "mma_m16n8k16_f16",
    "mul",
    "no_pdl",
    "ones",
    "otherwise",
    "own_checks",
    "persistent",
    "philox",
    "power",
    "priority",
    "product",
    "program",
    "promise",
    "reciprocal",
    "registers",
    "remap_xcd",
    "replicated",
    "rescale",
    "reset",
    "role",
    "round_bf16",
    "round_even",
    "rsqrt",
    "runs",
    "scalar",
    "sched_barrier",
    "segments",
    "shared",
    "sign",
    "sin",
    "sm_90a",
    "span",
    "spread",
    "sqrt",
    "st_global_b16",
    "stmatrix",
    "super_tiled",
    "sync",
    "tag",
    "tanh",
    "tanh_accurate",
    "tensor_map",
    "thread",
    "tma",
    "total",
    "unflatten",
    "vmem",
    "warp",
    "warp_mma",
    "warpgroup",
    "warpgroups",
    "warps",
    "wave",
    "wgmma",
    "when",
    "where",
    "workspace",
    "wrapped",
    "zeros",
]
