"""Which templates are tried with a form, at which sizes."""

from __future__ import annotations

import pytest

from argus.nests.affine import computed
from argus.nests.canonical import canonical
from argus.nests.nest import Apply, Axis, Nest, Read, Reduce, TensorType, size
from argus.testing import nest_cases as cases
from argus.torch import choice_of_products
from argus.torch.families import FAMILIES, candidates


def test_rows_of_any_length_have_a_kernel_and_long_ones_two() -> None:
    case = cases.along(cases.softmax, columns=False)
    form = canonical(case.nests, {each.name: each for each in case.inputs})
    (family,) = (each for each in FAMILIES if each.name == "reductions")

    def tried(length: int) -> list[str]:
        given = {"A": 200, "J": length, "B": 64}
        sizes = {name: int(computed(extent, given)) for name, extent in form.sizes.items()}
        return [each.family.rpartition("_")[0] for each in candidates(family, form, sizes)]

    assert tried(1000) == ["reductions"]
    assert tried(50001) == ["long_rows", "reductions"]
    assert tried(1 << 20) == ["reductions"]


def test_a_product_that_splits_operands_in_a_ring_has_a_second_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that is not proved with the first one is still computed with a product on matrix units."""
    n, m, k = (Axis(name, size(name.upper())) for name in "nmk")
    read = [Read("X", (n.index, k.index), "f32"), Read("W", (m.index, k.index), "f32")]
    nest = Nest("Y", "f32", (n, m), Apply("relu", (Reduce("add", (k,), Apply("mul", tuple(read))),)))
    form = canonical(
        [nest], {"X": TensorType("X", (n.extent, k.extent), "f32"), "W": TensorType("W", (m.extent, k.extent), "f32")}
    )
    (family,) = (each for each in FAMILIES if each.name == "products")

    def tried(rows: int) -> list[str]:
        given = {"N": rows, "M": 32768, "K": 32768}
        sizes = {name: int(computed(extent, given)) for name, extent in form.sizes.items()}
        return [each.config.partition("_")[0] for each in candidates(family, form, sizes)]

    assert tried(128) == ["parts"]
    assert tried(4096) == ["parts", "parts"]  # of tiles of 256 rows, and of 128

    def in_a_ring(*_: object, **__: object) -> tuple[str]:
        return ("inring",)

    monkeypatch.setattr(choice_of_products, "of_f32", in_a_ring)
    assert tried(128) == ["inring", "parts"]
