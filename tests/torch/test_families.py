"""Which templates are tried with a form, at which sizes."""

from __future__ import annotations

from argus.nests.affine import computed
from argus.nests.canonical import canonical
from argus.testing import nest_cases as cases
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
