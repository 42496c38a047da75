"""Element types: name, width in bits, family (float or int), and the NumPy dtype with the same arithmetic."""

from __future__ import annotations

from math import isfinite, isinf, isnan
from typing import Any, Literal, cast

import ml_dtypes
import numpy as np
from attrs import frozen

Family = Literal["float", "int"]


@frozen
class DType:
    """An element type. bits: width of one element."""

    name: str
    bits: int
    family: Family

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype with the same values and rounding."""
        return np.dtype(_NUMPY[self.name])

    def holds(self, number: float) -> bool:
        """Whether the type can represent `number` up to rounding, none as 0; not every type has infinities."""
        if self.family == "int":
            return isfinite(number) and number == int(number) and abs(number) < 1 << (self.bits - 1)
        with np.errstate(over="ignore"):
            rounded = float(np.asarray(number, np.float64).astype(self.numpy))
        if isinf(number) or rounded == 0:
            return rounded == number
        return isfinite(rounded) or isnan(number)

    @property
    def greatest(self) -> float:
        """The greatest number of the type that float64 has, too."""
        if self.family == "int":
            most = (1 << (self.bits - 1)) - 1
            return float(most) if float(most) <= most else float(np.nextafter(float(most), 0.0))
        limits = cast(Any, ml_dtypes.finfo(self.numpy))  # whose numbers have no types
        return float(limits.max)

    @property
    def integers(self) -> range:
        """All numbers of a type of integers, which is signed, in two's complement."""
        assert self.family == "int"
        return range(-(1 << (self.bits - 1)), 1 << (self.bits - 1))

    def __str__(self) -> str:
        return self.name


bf16 = DType("bf16", 16, "float")
f16 = DType("f16", 16, "float")
f32 = DType("f32", 32, "float")
e4m3 = DType("e4m3", 8, "float")
e4m3fnuz = DType("e4m3fnuz", 8, "float")
e5m2fnuz = DType("e5m2fnuz", 8, "float")
i8 = DType("i8", 8, "int")
i32 = DType("i32", 32, "int")
i64 = DType("i64", 64, "int")

DTYPES = (bf16, f16, f32, e4m3, e4m3fnuz, e5m2fnuz, i8, i32, i64)

_NUMPY: dict[str, type] = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
