"""Random kernels of rows whose outputs are claimed by formulas, computed in one of several ways, right or wrong."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import cast

from attrs import evolve, frozen

from argus.core.dsl.values import Value
from argus.core.ir import Kernel
from argus.language import (
    Fragment,
    Int,
    Tensor,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    exp,
    exp2,
    f32,
    first_lane,
    fma,
    kernel,
    load,
    loop,
    maximum,
    reciprocal,
    registers,
    sm_90a,
    spread,
    thread,
    total,
)
from property_tests.small.choosing import Choose

_PER_E = 1.4426950408889634
FUNCTIONS = ("square", "exp", "gate", "linear", "relu")
EDITS = ("another number", "another sign", "tail left out", "padding that counts")


@frozen
class Rows:
    """Each row's elements, or their sum or mean, of a function of them, by one warp.

    chunk, vector: elements of an iteration and of an access. backwards: the last chunk first. lanes: partial sums of
    each thread, folded once. inside: the divisor of a mean within the sum. inverse: reciprocals in place of divisions.
    base_2: exp2. fused: fma. in_place: variables are assigned again. edit: what is wrong.
    """

    family: str
    function: str
    chunk: int = 256
    vector: int = 4
    backwards: bool = False
    lanes: bool = True
    inside: bool = False
    inverse: bool = False
    base_2: bool = False
    fused: bool = False
    in_place: bool = False
    edit: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The transformations in it."""
        reduces = self.family != "elements"
        found: Mapping[str, bool] = {
            "chunks": True,
            "narrow vectors": self.vector < 4,
            "backwards": self.backwards,
            "one sum per thread": reduces and self.lanes,
            "one sum per chunk": reduces and not self.lanes,
            "divided within the sum": self.family == "mean" and self.inside,
            "times the reciprocal": self.inverse and self.function == "gate",
            "base 2": self.base_2 and self.function in ("exp", "gate"),
            "fma": self.fused and self.function in ("linear", "square"),
            "in place": self.in_place and self.function in ("square", "linear"),
        }
        return tuple(name for name, used in found.items() if used)

    def kernel(self) -> Kernel:
        def rows(X: Tensor, Y: Tensor) -> None:
            r, n = X.shape
            assume(n % 4 == 0, n >= 4)
            (row,) = block_id((r,))
            by = spread((self.chunk,), threads=32, vector=self.vector)
            sums = registers(f32, by.partial(0) if self.lanes else by.partial(0, within=32))
            sums[:] = 0.0
            count = n // self.chunk if self.edit == "tail left out" else ceil_div(n, self.chunk)
            for i in loop(count):
                at = count - 1 - i if self.backwards else i
                v = self._value(load(X[row].tile((self.chunk,), (at,)), by, edge=self._padding()))
                if self.family == "elements":
                    copy(v, Y[row].tile((self.chunk,), (at,)), edge=0)
                else:
                    if self.family == "mean" and self.inside:
                        v = v / n
                    part = v.sum(0, within=thread) if self.lanes else v.sum(0)
                    sums[:] = sums + part
            if self.family != "elements":
                whole = sums.sum(0) if self.lanes else sums
                if self.family == "mean" and not self.inside:
                    whole = whole / n
                copy(whole, Y[row], by=first_lane, edge=0)
            self._claim(X, Y)

        shape = "R N" if self.family == "elements" else "R"
        rows.__annotations__ = {"X": Tensor["R N", f32], "Y": Tensor[shape, f32]}
        return kernel(target=sm_90a, threads=32)(rows).trace()

    def _padding(self) -> float:
        """The number whose function is 0, so that it adds nothing."""
        if self.edit == "padding that counts":
            return 1.0
        return -inf if self.function == "exp" else 0.0

    def _value(self, v: Fragment) -> Fragment:
        own = registers(f32, v.layout) if self.in_place else None
        match self.function:
            case "square":
                found = fma(v, v, 0.0) if self.fused else v * v
            case "exp":
                found = exp2(v * _PER_E) if self.base_2 else exp(v)
            case "gate":
                below = 1.0 + (exp2(v * -_PER_E) if self.base_2 else exp(-v))
                found = v * reciprocal(below) if self.inverse else v / below
            case "linear":
                found = fma(v, 2.0, v) if self.fused else v * 2.0 + v
            case _:
                found = maximum(v, 0.0)
        if self.edit in ("another number", "another sign"):
            found = found * (1.25 if self.edit == "another number" else -1.0)
        if own is None:
            return found
        own[:] = found
        return own + 0.0

    def _claim(self, x: Tensor, y: Tensor) -> None:
        n = x.shape[1]

        def element(r: Int, j: Int) -> Value:
            return cast(Value, self._of(cast(Fragment, x[r, j])))

        def row(r: Int) -> Value:
            def body(j: Int) -> Value:
                return element(r, j)

            return total(body, over=n)

        def mean(r: Int) -> Value:
            return row(r) / n

        assert_equals(y, {"elements": element, "sum": row, "mean": mean}[self.family])

    def _of(self, a: Fragment) -> Fragment:
        """The function in a formula, whose operations are typed as those of fragments."""
        match self.function:
            case "square":
                return a * a
            case "exp":
                return exp(a)
            case "gate":
                return a / (1 + exp(-a))
            case "linear":
                return 3 * a
            case _:
                return maximum(a, 0.0)


def draw(choose: Choose) -> Rows:
    """A right one."""
    chunk, vector = choose((128, 256)), choose((4, 2, 1))
    yes = (False, True)
    family, function = choose(("elements", "sum", "mean")), choose(FUNCTIONS)
    backwards, lanes, inside, inverse, base_2, fused, in_place = (choose(yes) for _ in range(7))
    return Rows(family, function, chunk, vector, backwards, lanes, inside, inverse, base_2, fused, in_place)


def wrong(choose: Choose, of: Rows) -> Rows:
    """The same with one edit: padding counts only where there is a sum of it."""
    edits = EDITS[:3] if of.family == "elements" else EDITS
    return evolve(of, edit=choose(edits))
