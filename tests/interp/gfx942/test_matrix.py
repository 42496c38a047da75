"""Matrix instructions: lane layouts and formats against loops over the documented formulas."""

from __future__ import annotations

import numpy as np
import pytest

from argus.interp.gfx942.matrix import ROWS
from argus.interp.gfx942.wait_states import passes
from tests.interp.gfx942.executed import Instructions

LANES = 64


def line_of(name: str) -> str:
    shape = name.split("_")[3]
    sums = 4 if shape.startswith("16") else 16
    count = 1 if name.endswith("_f32") else 2
    a, b = ("v40", "v44") if count == 1 else ("v[40:41]", "v[44:45]")
    return f"{name} a[16:{15 + sums}], {a}, {b}, a[0:{sums - 1}]"


LINES = {row.name: line_of(row.name) for row in ROWS}


@pytest.fixture(scope="module")
def code() -> Instructions:
    return Instructions(list(LINES.values()))


def fnuz(bits: int, exponent_bits: int) -> float:
    """An FNUZ value from its definition: bias 2 ** (exponent_bits - 1), no infinities, NaN as negative zero."""
    if bits == 0x80:
        return float("nan")
    mantissa_bits = 7 - exponent_bits
    sign, exponent = bits >> 7, bits >> mantissa_bits & (1 << exponent_bits) - 1
    fraction = (bits & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    bias = 1 << (exponent_bits - 1)
    size = (1 + fraction) * 2.0 ** (exponent - bias) if exponent else fraction * 2.0 ** (1 - bias)
    return -size if sign else size


def value(bits: int, form: str) -> float:
    """An element from its bits."""
    match form:
        case "fp8":
            return fnuz(bits, 4)
        case "bf8":
            return fnuz(bits, 5)
        case "i8":
            return bits - 256 if bits >> 7 else bits
        case "f16":
            return float(np.uint16(bits).view(np.float16))
        case "bf16":
            return float(np.uint32(bits << 16).view(np.float32))
        case _:
            return float(np.uint32(bits).view(np.float32))


def element(words: np.ndarray[tuple[int, int], np.dtype[np.uint32]], lane: int, number: int, form: str) -> float:
    """Element `number` of those that a lane holds in two registers."""
    size = {"fp8": 8, "bf8": 8, "i8": 8, "f16": 16, "bf16": 16}.get(form, 32)
    per_word = 32 // size
    return value(int(words[number // per_word, lane]) >> size * (number % per_word) & (1 << size) - 1, form)


def words_of(form: str, random: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """Two registers of small values of a form, so that sums are exact; for the 8-bit ones, every pattern may come."""
    if form in {"fp8", "bf8"}:
        limited = [bits for bits in range(256) if 2**-4 <= abs(fnuz(bits, 4 if form == "fp8" else 5)) <= 8 or not bits]
        return random.choice(np.array(limited, np.uint8), (2, LANES, 4)).view(np.uint32)[..., 0]
    if form == "i8":
        return random.integers(0, 256, (2, LANES, 4), np.uint8).view(np.uint32)[..., 0]
    small = random.integers(-8, 9, (2, LANES, 2))
    if form == "f16":
        return small.astype(np.float16).view(np.uint32)[..., 0]
    if form == "bf16":
        return (small.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)[..., 0]
    return small[..., 0].astype(np.float32).view(np.uint32)


@pytest.mark.parametrize("name", LINES)
def test_a_matrix_product_follows_the_documented_layout(code: Instructions, name: str) -> None:
    _, _, result, shape, *forms = name.split("_")
    left, right = forms[0], forms[-1]
    rows, _, depth = (int(each) for each in shape.split("x"))
    random = np.random.default_rng(rows + depth)
    a, b = words_of(left, random), words_of(right, random)
    count = rows * rows // LANES
    added = random.integers(-9, 9, (count, LANES))
    kind = np.int32 if result == "i32" else np.float32
    sums = {256 + number: added[number].astype(kind) for number in range(count)}
    wave = code.run(LINES[name], {40: a[0], 41: a[1], 44: b[0], 45: b[1], **sums}, active=0)
    groups = LANES // rows
    held = depth // groups

    for register in range(count):
        for lane in range(0, LANES, 7):
            row, column = register // 4 * 4 * groups + 4 * (lane // rows) + register % 4, lane % rows
            wanted = float(added[register, lane])
            for k in range(depth):
                group, number = divmod(k, held)
                wanted += element(a, group * rows + row, number, left) * element(
                    b, group * rows + column, number, right
                )
            found = wave.v[256 + 16 + register, 0].view(kind)[lane]
            assert found == wanted, (register, lane)


def test_passes_are_those_of_published_cycles() -> None:
    assert {name: passes(name) for name in LINES if "bf8" not in name} == {
        "v_mfma_f32_32x32x2_f32": 16,
        "v_mfma_f32_16x16x4_f32": 8,
        "v_mfma_f32_32x32x8_f16": 8,
        "v_mfma_f32_16x16x16_f16": 4,
        "v_mfma_i32_32x32x16_i8": 8,
        "v_mfma_i32_16x16x32_i8": 4,
        "v_mfma_f32_32x32x8_bf16": 8,
        "v_mfma_f32_16x16x16_bf16": 4,
        "v_mfma_f32_16x16x32_fp8_fp8": 4,
        "v_mfma_f32_32x32x16_fp8_fp8": 8,
    }
