"""TMA tensor maps: elements of every type have the width that the driver is told."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from argus.core.dtype import DTYPES, DType
from argus.runtime.cuda.tensor_maps import encoding
from argus.runtime.gpu.driver import TensorMapLayout


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
WIDTHS = {"UINT8": 8, "FLOAT16": 16, "BFLOAT16": 16, "FLOAT32": 32, "INT32": 32}


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
