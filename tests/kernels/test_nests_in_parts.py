"""Reductions in parts are proved as programs: what the launches leave is the textbook's formula of the inputs."""

# Without `from __future__ import annotations`: programs are traced with this file.

from collections.abc import Sequence

import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.nests import made, reductions
from argus.kernels.nests.reductions import Reductions
from argus.language import Int, ProgramTemplate, Tensor, Value, assert_equals, elements, f32, program, total, workspace
from argus.nests.canonical import canonical
from argus.nests.nest import Apply, Axis, Expr, Nest, Read, Reduce, TensorType, size
from argus.nests.partials import moments
from argus.verifier.program import verify_program

N, C, S = (Axis(name, size(name.upper())) for name in ("n", "c", "s"))
X = Read("X", (N.index, C.index, S.index), "f32")
TYPE = TensorType("X", (N.extent, C.extent, S.extent), "f32")
VALUES = {"N": 64, "C": 64, "S": 1 << 18}
PARTS = Reductions(threads=128, vector=4, values=2)
WHOLE = Reductions(threads=64, kept=2, held=True)


def of_parts(nests: Sequence[Nest]) -> ProgramTemplate:
    """The mean and variance of each channel, by a launch for the parts and one for what they combine to."""
    types = {each.output: each.type for each in nests} | {"X": TYPE}
    first = canonical(nests[:2], types, VALUES)
    last = canonical(nests[2:], types, VALUES)
    parts, whole = (
        made.template(form, reductions.reduced, config, name)
        for form, config, name in ((first, PARTS, "parts"), (last, WHOLE, "whole"))
    )

    @program
    def normed(X: Tensor["N C S", f32], M: Tensor["C", f32], V: Tensor["C", f32]) -> None:
        n, c, s = X.shape
        sizes: dict[object, Int] = {N.extent: n, C.extent: c, S.extent: s}

        def others(form: made.Canonical) -> dict[str, Int]:
            known = {extent for each in form.parameters for extent in each.type.extents}
            return {name: sizes[extent] for name, extent in form.sizes.items() if name not in known}

        means, squares = workspace(f32, (c, n)), workspace(f32, (c, n))
        parts(X, means, squares, cfg=PARTS, **others(first))
        whole(means, squares, M, V, cfg=WHOLE, **others(last))

        def mean(channel: Int) -> Value:
            return total(lambda i, k: elements(X)(i, channel, k), over=(n, s)) / n / s

        assert_equals(M, mean)
        assert_equals(V, lambda c: total(lambda i, k: (elements(X)(i, c, k) - mean(c)) ** 2, over=(n, s)) / n / s)

    return normed


def test_moments_of_parts_are_proved_to_be_those_of_all() -> None:
    budget = evolve(Budget(), runs=0)
    verdict = verify_program(of_parts(moments("m", X, (C,), (N, S), VALUES)), solver="z3", budget=budget).verdict
    assert isinstance(verdict, Proved), verdict


def without_means(nest: Nest) -> Nest:
    """The variance without the squared deviations of the parts' means."""

    def changed(body: Expr) -> Expr:
        match body:
            case Apply(op="div", args=(inner, count)):
                return Apply("div", (changed(inner), count))
            case Reduce(op="add", axes=axes, body=Apply(op="add", args=(squares, _))):
                return Reduce("add", axes, squares)
            case _:
                raise AssertionError(body)

    return evolve(nest, body=changed(nest.body))


@pytest.mark.share(32, among="nests")
def test_squared_deviations_of_parts_alone_are_not() -> None:
    *others, variance = moments("m", X, (C,), (N, S), VALUES)
    budget = evolve(Budget(), runs=0)
    wrong = of_parts([*others[:3], without_means(variance)])
    assert not isinstance(verify_program(wrong, solver="z3", budget=budget).verdict, Proved)
