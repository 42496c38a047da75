"""Element-wise text on 8-bit floats and on integers: conversions and results, executed beside NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from argus.core.diagnostic import ArgusError
from argus.emit.fp8 import CONVERSIONS, CONVERSIONS_FNUZ
from argus.emit.hip.prelude import PRELUDE
from argus.language import Tensor, copy, exp, gfx942, i32, kernel, load, spread
from argus.verifier.loader import load as load_file
from property_tests.programs import CORPUS
from tests.emit import host

E4M3, FNUZ = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e4m3fnuz)
COUNT = 1 << 16
executed = pytest.mark.skipif(not host.available(), reason="no contexts of glibc here")
CONVERTING = """\
extern "C" __global__
void converting(const f32* X, unsigned char* Y, f32* Z) {
    const int thread = __builtin_amdgcn_workitem_id_x();
    for (int at = thread; at < 65536; at += 64) {
        Y[at] = to_e4m3(X[at]);
        Z[at] = of_e4m3((unsigned char)at);
    }
}
"""
TO_FNUZ = """\
extern "C" __global__
void converting(const f32* X, unsigned char* Y) {
    for (int at = __builtin_amdgcn_workitem_id_x(); at < 65536; at += 64) Y[at] = to_e4m3fnuz(X[at]);
}
"""


def numbers(dtype: np.dtype[Any] = E4M3) -> npt.NDArray[np.float32]:
    """Every number of a type, the middle of each two, their neighbours in f32, and random bits."""
    every = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    held = np.unique(every[np.isfinite(every)])
    middles = (held[1:] + held[:-1]) / 2
    near = np.concatenate(
        [held, middles, np.array([240, 248, 256, 464, 480, 1e30, np.inf, -np.inf, np.nan, 0, -0.0, 1e-40], np.float32)]
    )
    beside = [np.nextafter(near, np.float32(end)) for end in (np.inf, -np.inf)]
    near = np.concatenate([near, *beside]).astype(np.float32)
    drawn = np.random.default_rng(0).integers(0, 1 << 32, COUNT - len(near), dtype=np.uint64).astype(np.uint32)
    return np.concatenate([near, drawn.view(np.float32)])


@executed
def test_conversions_of_e4m3_are_those_of_numpy(tmp_path: Path) -> None:
    x, y, z = numbers(), np.zeros(COUNT, np.uint8), np.zeros(COUNT, np.float32)
    host.run(PRELUDE + CONVERSIONS + CONVERTING, "converting", 64, (1, 1), (x, y, z), (), tmp_path)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = x.astype(E4M3).astype(np.float32)
    every = np.arange(256, dtype=np.uint8).view(E4M3).astype(np.float32)
    np.testing.assert_array_equal(y.view(E4M3).astype(np.float32), wanted)
    np.testing.assert_array_equal(z[:256], every)
    assert np.array_equal(np.signbit(y.view(E4M3).astype(np.float32))[x == 0], np.signbit(x[x == 0]))


@executed
def test_conversions_to_e4m3fnuz_are_those_of_numpy(tmp_path: Path) -> None:
    x, y = numbers(FNUZ), np.zeros(COUNT, np.uint8)
    host.run(PRELUDE + CONVERSIONS_FNUZ + TO_FNUZ, "converting", 64, (1, 1), (x, y), (), tmp_path)
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_array_equal(y, x.astype(FNUZ).view(np.uint8))


@executed
def test_integers_wrap_around(tmp_path: Path) -> None:
    """The file's own formula, at numbers whose product with 3 overflows."""
    (exported,) = load_file(str(CORPUS / "proved" / "integers_clamped.py"))
    rows, columns = 20, 36
    draw = np.random.default_rng(1)
    x = draw.integers(-(1 << 31), 1 << 31, (rows, columns)).astype(np.int32)
    x[::2] = draw.integers(-50, 50, (rows // 2, columns))
    d = draw.integers(-40, 40, rows).astype(np.int32)
    x[0, 0], d[0] = 4, 5  # 3 * 4 - 5 == 7
    y = np.zeros((rows, columns), np.int32)
    host.run_kernel(exported.trace(), (x, d, y), {"R": rows, "N": columns}, tmp_path)
    moved = np.int32(3) * x - d[:, None]
    np.testing.assert_array_equal(y, np.where(moved == 7, -moved, np.clip(moved, -100, 100)))
    assert y[0, 0] == -7


def test_an_operation_of_floats_only_is_refused_on_integers() -> None:
    @kernel(target=gfx942, threads=64)
    def made(X: Tensor["64 4", i32], Y: Tensor["64 4", i32]) -> None:
        copy(exp(load(X, spread((64, 4), threads=64, vector=4))), Y)

    with pytest.raises(ArgusError, match="`exp` of i32, which is defined on floats only") as found:
        made.trace()
    assert found.value.diagnostic.code == "E106"
