"""Numbers may be rounded to a type without infinities, such as FNUZ; what may be infinite has no number in it."""

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.language import (
    DType,
    Template,
    Tensor,
    assert_equals,
    block_id,
    copy,
    e4m3,
    e4m3fnuz,
    e5m2fnuz,
    elements,
    f32,
    gfx942,
    kernel,
    load,
    maximum,
    spread,
    vmem,
)
from argus.verifier.kernel import verify

pytestmark = pytest.mark.share(3, among="verifier: types without infinities")

BRIEF = evolve(Budget(), runs=0)


def rounded(dtype: DType, *, least: float) -> Template:
    """A kernel that rounds the larger of each number and another one."""

    @kernel(target=gfx942, threads=64)
    def made(X: Tensor["64 64", f32], Y: Tensor["64 64", dtype]) -> None:
        block_id((1,))
        x = load(X.tile((64, 64), (0, 0)), spread((64, 64), threads=64, vector=4))
        vmem.wait(0)
        copy(maximum(x, least).to(dtype), Y.tile((64, 64), (0, 0)))
        numbers = elements(X)
        assert_equals(Y, lambda m, n: maximum(numbers(m, n), least))

    return made


@pytest.mark.parametrize("dtype", [e4m3, e4m3fnuz, e5m2fnuz], ids=str)
def test_numbers_are_rounded_and_infinities_are_not(dtype: DType) -> None:
    assert isinstance(verify(rounded(dtype, least=0.0), solver="z3", budget=BRIEF).verdict, Proved)
    verdict = verify(rounded(dtype, least=float("inf")), solver="z3", budget=BRIEF).verdict
    assert isinstance(verdict, Unknown)
    assert f"may be infinite as {dtype}" in verdict.reason
