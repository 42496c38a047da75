"""Which templates are tried with a form, at which sizes."""

from __future__ import annotations

import pytest
from attrs import evolve

from argus.core.algebra import const
from argus.nests.affine import computed
from argus.nests.canonical import canonical
from argus.nests.convolution import Convolution, Taps, convolution_nest
from argus.nests.nest import Apply, Axis, Expr, Nest, Read, Reduce, TensorType, size
from argus.testing import nest_cases as cases
from argus.torch.compiled import form_of
from argus.torch.families import FAMILIES, Family, candidates

SHAPES = (64, 64, 128, 128), (128, 64, 3, 3), (64, 128, 126, 126)


def _mish(x: Expr) -> Expr:
    return Apply("mul", (x, Apply("tanh", (Apply("log1p", (Apply("exp", (x,)),)),))))


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


def test_a_product_that_splits_operands_in_a_ring_has_a_second_schedule() -> None:
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

    assert tried(128) == ["inring", "parts"]
    assert tried(4096) == ["parts", "parts"]  # of tiles of 256 rows, and of 128


@pytest.mark.parametrize(("work", "kernels"), [("relu", ["convolutions"]), ("a mish of a mish", [])])
def test_much_work_on_sums_on_matrix_units_has_a_launch_of_its_own(work: str, kernels: list[str]) -> None:
    x, f = (TensorType(name, tuple(map(const, shape)), "f32") for name, shape in zip("xf", SHAPES[:2], strict=True))
    y = TensorType("y", tuple(map(const, SHAPES[2])), "f32")
    plain = convolution_nest(Convolution((Taps(3), Taps(3))), x, f, y)
    body = Apply("relu", (plain.body,)) if work == "relu" else _mish(_mish(plain.body))
    nests, types = (evolve(plain, body=body),), {each.name: each for each in (x, f, y)}

    def tried(family: Family) -> bool:
        form = form_of(nests, types, family, {})
        return bool(candidates(family, form, {name: int(computed(extent, {})) for name, extent in form.sizes.items()}))

    assert [each.name for each in FAMILIES if each.multiplies and tried(each)] == kernels
