"""TMA tensor maps: elements of every type have the width that the driver is told, and boxes may end at any row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from argus.core.dtype import DTYPES, DType
from argus.core.ir.view_ends import ENDED_ROWS
from argus.runtime.cuda.tensor_maps import encoding
from argus.runtime.gpu.arguments import Array, TensorLayout
from argus.runtime.gpu.driver import GpuDriver, TensorMapLayout
from argus.runtime.gpu.tensor_maps import TensorMaps


class Named:
    """An enumeration of the driver, whose values are their names."""

    def __getattr__(self, name: str) -> str:
        return name


RAW = SimpleNamespace(
    cuuint64_t=int,
    cuuint32_t=int,
    CUtensorMapSwizzle=Named(),
    CUtensorMapDataType=Named(),
    CUtensorMapInterleave=Named(),
    CUtensorMapL2promotion=Named(),
    CUtensorMapFloatOOBfill=Named(),
)
WIDTHS = {"UINT8": 8, "FLOAT16": 16, "BFLOAT16": 16, "FLOAT32": 32, "INT32": 32, "INT64": 64}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_of_a_tensor_map_have_their_width(dtype: DType) -> None:
    size = dtype.bits // 8
    told, axes, _, extents, strides, *_ = encoding(
        RAW, TensorMapLayout(dtype.name, (6, 64), (64 * size,), (6, 16), 0), 0
    )

    assert WIDTHS[str(told).removeprefix("CU_TENSOR_MAP_DATA_TYPE_")] == dtype.bits
    assert (axes, extents, strides) == (2, [64, 6], [64 * size])


@pytest.mark.parametrize(
    ("row", "promoted"), [(8192, "256B"), (256, "256B"), (2000, "128B"), (144, "128B"), (128, "256B")]
)
def test_rows_that_begin_within_blocks_are_fetched_by_lines(row: int, promoted: str) -> None:
    *_, said, _ = encoding(RAW, TensorMapLayout("bf16", (6, row // 2), (row,), (6, 64), 128), 0)
    assert said == f"CU_TENSOR_MAP_L2_PROMOTION_L2_{promoted}"


class Encoder:
    """A driver that keeps what it is asked to encode."""

    def encode_tensor_map(self, layout: TensorMapLayout, address: int) -> tuple[TensorMapLayout, int]:
        return layout, address


def test_the_map_of_boxes_that_end_reads_rows_before_their_end_alone() -> None:
    """Rows from `stop` on are beyond the last axis of rows; others are at their own addresses, modulo 2^64."""
    made = {"box": [1, 1, 1, 4, 64], "swizzle": 128, "dtype": "bf16", "free": True, "ended": True}
    place = TensorLayout("V", (2, 5, 128), (640, 128, 1), 16)  # heads are innermost in memory
    given = SimpleNamespace(
        shape=(2, 5, 128), data_ptr=lambda: 1 << 20, stride=lambda: (128, 256, 1)
    )  # heads innermost
    layout, address = TensorMaps(cast("GpuDriver", Encoder())).of(made, place, cast("Array", given))

    heads, back, apart, *_ = layout.strides
    assert (heads, apart, layout.shape[-2], layout.box) == (256, 512, ENDED_ROWS, (1, 1, 1, 4, 64))
    assert all(stride % 16 == 0 and stride < 1 << 40 for stride in layout.strides)
    assert address == 1 << 20
    for stop in range(6):
        for row in range(8):
            within = ENDED_ROWS + row - stop
            assert (within < ENDED_ROWS) == (row < stop)
            there = address + ENDED_ROWS * back + apart * (stop + within)
            assert there % (1 << 64) == address + 512 * row
