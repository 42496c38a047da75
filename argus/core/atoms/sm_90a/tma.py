"""TMA and bulk copies, issued by one thread: boxes of a tensor by its tensor map, and contiguous bytes.

A load completes on an mbarrier with the bytes of its whole box, including elements outside the tensor, which read as
0; a store joins the issuing thread's bulk group and writes nothing outside. Sources: NVIDIA PTX ISA,
`cp.async.bulk.tensor` and `cp.async.bulk`; CUDA driver API, `cuTensorMapEncodeTiled` (box extents of at most 256, rows
of multiples of 16 bytes that fit the swizzle span, strides of multiples of 16 bytes); PTX ISA, swizzling modes: the
pattern is a function of the shared address, so a tile begins at a multiple of 8 spans. Tensor maps have up to five
axes; along all but the last two, the box has extent 1.
"""

from __future__ import annotations

from argus.core.atom import Atom, Box, Completion, Operand

SWIZZLES = (0, 32, 64, 128)
_LOADED = Completion(signal=True, tracked=False)
_STORED = Completion(queue="bulk", group="commit", tracked=False)


def _tile_align(span: int) -> int:
    return 8 * span if span else 128


def _load(span: int, axes: int) -> Atom:
    return Atom(
        name=f"tma_load_{axes}d" + (f"_sw{span}" if span else ""),
        targets=frozenset({"sm_90a"}),
        unit=1,
        operands={
            "source": Operand("global", vector_bits=128, align=16),
            "target": Operand("shared", vector_bits=128, align=_tile_align(span)),
        },
        completion=_LOADED,
        proxy="async",
        edge="box_zero",
        spelling={
            "sm_90a": f"cp.async.bulk.tensor.{axes}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[{target}], [{source}], [{signal}];"
        },
        box=Box(axes, 256, 16, span),
    )


def _store(span: int, axes: int) -> Atom:
    return Atom(
        name=f"tma_store_{axes}d" + (f"_sw{span}" if span else ""),
        targets=frozenset({"sm_90a"}),
        unit=1,
        operands={
            "source": Operand("shared", vector_bits=128, align=_tile_align(span)),
            "target": Operand("global", vector_bits=128, align=16),
        },
        completion=_STORED,
        proxy="async",
        edge="box_zero",
        spelling={
            "sm_90a": f"cp.async.bulk.tensor.{axes}d.global.shared::cta.tile.bulk_group [{{target}}], [{{source}}];"
        },
        box=Box(axes, 256, 16, span),
    )


tma_load = tuple(_load(span, 2) for span in SWIZZLES)
tma_store = tuple(_store(span, 2) for span in SWIZZLES)
tma_load_more = tuple(_load(span, axes) for axes in (3, 4, 5) for span in SWIZZLES)
tma_store_more = tuple(_store(span, axes) for axes in (3, 4, 5) for span in SWIZZLES)
"""Loads and stores for tensors with more than two axes."""

bulk_load_1d = Atom(
    name="bulk_load_1d",
    targets=frozenset({"sm_90a"}),
    unit=1,
    operands={
        "source": Operand("global", vector_bits=128, align=16),
        "target": Operand("shared", vector_bits=128, align=16),
    },
    completion=_LOADED,
    proxy="async",
    spelling={
        "sm_90a": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[{target}], [{source}], {bytes}, [{signal}];"
    },
    box=Box(1),
)
bulk_store_1d = Atom(
    name="bulk_store_1d",
    targets=frozenset({"sm_90a"}),
    unit=1,
    operands={
        "source": Operand("shared", vector_bits=128, align=16),
        "target": Operand("global", vector_bits=128, align=16),
    },
    completion=_STORED,
    proxy="async",
    spelling={"sm_90a": "cp.async.bulk.global.shared::cta.bulk_group [{target}], [{source}], {bytes};"},
    box=Box(1),
)

ATOMS: tuple[Atom, ...] = (
    *tma_load,
    *tma_store,
    *tma_load_more,
    *tma_store_more,
    bulk_load_1d,
    bulk_store_1d,
)
