"""The kernel language: everything that a kernel file imports.

See docs/quickstart.md for a first kernel and docs/tour.md for what each construct means.
"""

from __future__ import annotations

from argus.core.atoms.gfx942 import (
    buffer_load,
    buffer_store,
    ds_read,
    ds_read_b64,
    ds_read_b128,
    ds_write,
    ds_write_b64,
    ds_write_b128,
    global_load,
    global_store,
    mfma_f32_16x16x16_bf16,
    mfma_f32_32x32x8_bf16,
)
from argus.core.dsl.claims import (
    assert_covers,
    assert_distinct,
    assert_equal,
    assert_relation,
    assert_written_once,
    assume,
    tag,
)
from argus.core.dsl.control import block_id, loop, otherwise, when
from argus.core.dsl.fragments import Fragment, exp2, maximum, minimum, registers, where, zeros
from argus.core.dsl.handles import Bool, Int, ceil_div, eq
from argus.core.dsl.kernel import Template, kernel
from argus.core.dsl.statements import (
    copy,
    fence,
    lds,
    load,
    mfma,
    mma,
    priority,
    reset,
    sched_barrier,
    shared,
    spread,
    sync,
    vmem,
)
from argus.core.dsl.views import Tensor
from argus.core.dtype import bf16, e4m3, f16, f32, i32
from argus.core.layout import TV, Layout, Swizzle
from argus.core.target import gfx942, sm_90a
from argus.core.tiling import TiledMma

__all__ = [
    "TV",
    "Bool",
    "Fragment",
    "Int",
    "Layout",
    "Swizzle",
    "Template",
    "Tensor",
    "TiledMma",
    "assert_covers",
    "assert_distinct",
    "assert_equal",
    "assert_relation",
    "assert_written_once",
    "assume",
    "bf16",
    "block_id",
    "buffer_load",
    "buffer_store",
    "ceil_div",
    "copy",
    "ds_read",
    "ds_read_b64",
    "ds_read_b128",
    "ds_write",
    "ds_write_b64",
    "ds_write_b128",
    "e4m3",
    "eq",
    "exp2",
    "f16",
    "f32",
    "fence",
    "gfx942",
    "global_load",
    "global_store",
    "i32",
    "kernel",
    "lds",
    "load",
    "loop",
    "maximum",
    "mfma",
    "mfma_f32_16x16x16_bf16",
    "mfma_f32_32x32x8_bf16",
    "minimum",
    "mma",
    "otherwise",
    "priority",
    "registers",
    "reset",
    "sched_barrier",
    "shared",
    "sm_90a",
    "spread",
    "sync",
    "tag",
    "vmem",
    "when",
    "where",
    "zeros",
]
