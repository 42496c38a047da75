"""Direct-to-LDS loads: each lane loads the element that belongs at the LDS address where the hardware writes it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from argus.core.diagnostic import ArgusError
from argus.emit.hip.text import hip_text
from argus.kernels.gemm import gemm
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.language import (
    Swizzle,
    Tensor,
    assume,
    bf16,
    buffer_load_lds,
    copy,
    gfx942,
    kernel,
    shared,
    spread,
)

_ROWS = re.compile(r"const int (at[01]\w*) = (?:128 \* block_0_|32 \* k_) \+ (.*);")
_LOADS = re.compile(r"buffer_load_lds_b32\(&(\w+)\[(.*?)\], A__buffer, guard\((at0\w*) < M_ && (at1\w*) < K_")


def test_a_lane_loads_the_element_of_its_swizzled_address() -> None:
    config = Cdna3Staged(bm=128, bn=128, run=8, vector=8, swizzle=True, direct=True)
    text = hip_text(gemm.instance(config, "direct"))
    block = next(part for part in text.split("{\n") if "A__buffer, guard" in part)
    coordinates, loads = dict(_ROWS.findall(block)), _LOADS.findall(block)
    threads = np.arange(256)
    seen: set[int] = set()

    assert len(loads) == 128 * 32 // 2 // 256
    for _, run, row, column in loads:
        first = eval(run, {"wave": threads // 64, "__builtins__": {}})  # noqa: S307 reason: our own text
        given: dict[str, object] = {"thread_": threads, "__builtins__": {}}
        r, c = (eval(coordinates[name], given) for name in (row, column))  # noqa: S307 reason: our own text
        written = first + 2 * (threads % 64)
        assert np.array_equal(Swizzle(2, 3, 3).images(32 * r + c), written)
        seen |= set(written.tolist())
    assert seen == set(range(0, 128 * 32, 2))


def test_a_part_of_a_buffer_is_not_emitted() -> None:
    @kernel(target=gfx942, threads=64)
    def half(A: Tensor["M 64", bf16]) -> None:
        assume(A.shape[0] < 1 << 20)
        rows = shared(bf16, (8, 64))
        by = spread((4, 64), threads=64, vector=2)
        copy(A.tile((4, 64), (0, 0)), rows.tile((4, 64), (1, 0)), via=buffer_load_lds, by=by, edge=0)

    with pytest.raises(ArgusError, match="to a part of `rows`") as refused:
        hip_text(half.trace())
    assert refused.value.diagnostic.code == "E501"
