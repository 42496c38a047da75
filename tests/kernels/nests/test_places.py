"""Places of extrema along an axis that is not contiguous: proved, and as torch has them with NaN and equal elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from argus.core.ir import Kernel
from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.interp.interpret import interpret
from argus.kernels.nests import places as template_of_places
from argus.kernels.nests.made import template
from argus.kernels.nests.places import Places, config_for, places
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.nest import Axis, Nest, Read, Reduce, ReduceOp, TensorType, size
from argus.nests.simplify import apply
from argus.verifier.api import verify

SIZES = {"A": 3, "B": 5, "C": 20000}


def form_of(op: ReduceOp, dtype: str = "i64", *, last: bool = False, sizes: Mapping[str, int] = SIZES) -> Canonical:
    """The place along the middle axis of three, or along the last."""
    a, b, c = map(size, "ABC")
    outer, inner, along = Axis("i", a), Axis("k", b if last else c), Axis("j", c if last else b)
    at = (outer, inner, along) if last else (outer, along, inner)
    body = Read("X", tuple(axis.index for axis in at), "f32")
    nest = Nest("Y", dtype, (outer, inner), Reduce(op, (along,), apply("mul", body, body) if dtype == "i32" else body))
    return canonical((nest,), {"X": TensorType("X", (a, b, c), "f32"), "Y": nest.type}, sizes)


def made(form: Canonical) -> Kernel:
    return template(form, places, Places(), "places").trace()


def values_of(form: Canonical, sizes: Mapping[str, int]) -> dict[str, int]:
    return {name: int(computed(extent, sizes)) for name, extent in form.sizes.items()}


@pytest.mark.share(3)
@pytest.mark.parametrize(("op", "dtype"), [("argmax", "i64"), ("argmin", "i64"), ("argmax", "i32")])
def test_the_place_is_proved(op: ReduceOp, dtype: str) -> None:
    assert isinstance(verify(made(form_of(op, dtype)), solver="z3").verdict, Proved)


@pytest.mark.share(2)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_nan_counts_first_and_so_does_the_first_of_equals(op: ReduceOp) -> None:
    form = form_of(op, sizes={"A": 2, "B": 7, "C": 300})
    x = np.random.default_rng(0).integers(-2, 3, (2, 7, 300)).astype(np.float32)
    x[0, 3, ::3] = x[0, 5, ::3] = np.nan
    x[1, :, 4] = -np.inf
    x[1, 2, 5] = np.inf
    kernel = made(form)
    given: list[Any] = [x, np.zeros((2, 300), np.int64)]
    found = interpret(kernel, *given, tags=False)["Y0"]
    np.testing.assert_array_equal(found, (np.argmax if op == "argmax" else np.argmin)(x, 1))


def test_other_nests_have_no_configuration() -> None:
    form = form_of("argmax")
    assert config_for(form, values_of(form, SIZES)) == Places()
    assert config_for(form, values_of(form, {**SIZES, "C": 64})) is None  # too few columns
    rows = form_of("argmax", last=True)
    assert config_for(rows, values_of(rows, SIZES)) is None


def test_another_running_extremum_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutation: places of elements above a running minimum."""
    monkeypatch.setattr(template_of_places, "maximum_nan", template_of_places.minimum_nan)
    budget = evolve(Budget(), runs=0)
    assert not isinstance(verify(made(form_of("argmax")), solver="z3", budget=budget).verdict, Proved)
