"""Functions that the emitted text brings along, executed beside float64; maxima and minima that keep NaN."""

from __future__ import annotations

import numpy as np
import pytest

from argus.core.dtype import bf16
from argus.core.elementwise import ELEMENT_OPS
from argus.emit import functions
from argus.emit.hip.text import hip_text
from argus.language import gfx942, sm_90a
from argus.testing.instructions.functions import IN_DOUBLE, POWERS, function_kernel, numbers, on_cpu, units_off

TARGETS = {"gfx942": gfx942, "sm_90a": sm_90a}
STEP = 1 << 18
MOST: dict[str, float] = {
    **dict.fromkeys(("expm1", "erf", "tanh_accurate"), 1.5),
    **dict.fromkeys(("log1p", "sin", "cos"), 3.0),
    **dict.fromkeys(("exp", "log"), 0.501),
}
"""Units of the last place; those of a library of the CPU are rounded from float64."""
every_target = pytest.mark.parametrize("target", TARGETS)
exact = {"floor", "ceil", "round"}


@pytest.mark.share(4)
@every_target
@pytest.mark.parametrize("name", sorted(MOST.keys() | exact))
def test_a_function_is_as_near_as_it_says(name: str, target: str) -> None:
    x = numbers(STEP)
    found = on_cpu(function_kernel(name, TARGETS[target]), x)
    with np.errstate(all="ignore"):
        wanted = IN_DOUBLE[name](x.astype(np.float64))
    normal = (np.abs(wanted) >= 2.0**-126) | (wanted == 0)
    assert units_off(found, wanted)[normal].max() <= MOST.get(name, 0.0)


@pytest.mark.share(4)
@every_target
@pytest.mark.parametrize("exponent", POWERS)
def test_a_power_is_within_a_unit(exponent: float, target: str) -> None:
    x = numbers(STEP)
    y = np.full_like(x, exponent)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64))
    assert units_off(on_cpu(function_kernel("pow", TARGETS[target]), x, y), wanted).max() <= 1.0


def test_a_wrong_coefficient_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutation: one coefficient of erf has another last digit."""
    text = functions.TEXTS["gfx942"]["erf_of"]
    wrong = {**functions.TEXTS["gfx942"], "erf_of": text.replace("0.12837916612625122f", "0.12839f")}
    monkeypatch.setitem(functions.TEXTS, "gfx942", wrong)
    x = np.linspace(-3, 3, 4096, dtype=np.float32)
    found = on_cpu(function_kernel("erf", gfx942), x)
    assert units_off(found, IN_DOUBLE["erf"](x.astype(np.float64))).max() > MOST["erf"]


@every_target
@pytest.mark.parametrize("name", ["max", "min", "max_nan", "min_nan", "sign"])
def test_nan_is_kept_or_dropped_as_in_the_interpreter(name: str, target: str) -> None:
    pool = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5, -2.0, 3.0, -4.0], np.float32)
    x, z = np.repeat(pool, 8), np.tile(pool, 8)
    entry = ELEMENT_OPS[name]
    found = on_cpu(function_kernel(name, TARGETS[target]), x, z)
    np.testing.assert_array_equal(found, entry.meaning(x, z) if entry.arity > 1 else entry.meaning(x))


def test_elements_of_16_bits_are_computed_in_f32_and_rounded() -> None:
    x = numbers(1 << 22).astype(bf16.numpy)
    found = on_cpu(function_kernel("erf", gfx942, bf16), x)
    np.testing.assert_array_equal(found.astype(np.float32), ELEMENT_OPS["erf"].meaning(x).astype(np.float32))


def test_a_text_has_the_functions_that_it_calls_alone() -> None:
    text = hip_text(function_kernel("erf", gfx942))
    assert "erf_of(f32 x)" in text
    assert "tanh_of" not in text
    assert "turned" not in text
