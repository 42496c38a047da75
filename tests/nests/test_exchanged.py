"""Sums in another order: the same numbers, proved equal to what they stand for, and wrong ones are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from attrs import evolve, frozen

from argus.core import algebra
from argus.core.values import binding, exchanging
from argus.nests.affine import computed
from argus.nests.as_values import are_equal
from argus.nests.convolution import Convolution, Taps, convolution_nest, convolution_of
from argus.nests.evaluate import Array, nest_value
from argus.nests.exchanged import FACTORS, WINDOWS, Exchanged, exchanged
from argus.nests.fusion import inlined
from argus.nests.nest import Apply, Axis, Constant, Convert, Expr, Inside, Nest, Read, Reduce, Select, TensorType
from argus.nests.rewrite import reductions, with_reads

number = algebra.const


@frozen
class Case:
    """A sum of sums. whole: the nest. types: of what it reads. rule: by which its sums are exchanged."""

    whole: Nest
    types: Mapping[str, TensorType]
    rule: str

    @property
    def found(self) -> Exchanged:
        made = exchanged(self.whole, self.types, {})
        assert made is not None
        return made

    def proves(self, found: Exchanged) -> bool:
        types = {**self.types, **{each.output: each.type for each in found.before}}
        return are_equal(found.new, found.old, {n.output: n for n in found.before}, types, self.whole.domain)


def read(name: str, *axes: Axis) -> Read:
    return Read(name, tuple(axis.index for axis in axes), "f32")


def of_product(bias: bool = False) -> Case:
    """The sum of half of each output of a product of matrices of equal sizes."""
    m, n, k, o = (Axis(name, number(extent)) for name, extent in (("m", 24), ("n", 40), ("k", 40), ("o", 1)))
    product: Expr = Reduce("add", (k,), Apply("mul", (read("X", m, k), read("W", n, k))))
    if bias:
        product = Apply("sub", (Apply("add", (product, read("B", n))), read("X", m, n)))
    halves = Reduce("add", (n,), Apply("div", (product, Constant(2.0))))
    shapes = {"X": (24, 40), "W": (40, 40), "B": (40,)}
    types = {name: TensorType(name, tuple(map(number, shape)), "f32") for name, shape in shapes.items()}
    return Case(Nest("Y", "f32", (m, o), Apply("mul", (halves, Constant(1.5)))), types, FACTORS)


def of_spread_rows() -> Case:
    """The sum of each row of a product whose first factor has numbers at every second place, and else zeros."""
    m, n, v, o = (Axis(name, number(extent)) for name, extent in (("m", 24), ("n", 40), ("v", 40), ("o", 1)))
    x = Read("X", (m.index, algebra.floordiv(v.index, 2)), "f32")
    spread = Select(Inside(algebra.eq(algebra.mod(v.index, 2), 0)), x, Constant(0.0))
    product = Reduce("add", (v,), Apply("mul", (spread, read("W", n, v))))
    shapes = {"X": (24, 20), "W": (40, 40)}
    types = {name: TensorType(name, tuple(map(number, shape)), "f32") for name, shape in shapes.items()}
    return Case(Nest("Y", "f32", (m, o), Apply("mul", (Reduce("add", (n,), product), Constant(1.5)))), types, FACTORS)


def of_convolution(taps: Taps, space: int, output: int, window: int, rule: str = FACTORS, channels: int = 4) -> Case:
    """The mean of windows of the outputs of a convolution of two axes, of all outputs if there is one window."""
    conv = Convolution((taps, taps))
    x = TensorType("X", (number(3), number(channels), number(space), number(space)), "f32")
    f = TensorType(
        "F", tuple(map(number, ((channels, 6) if taps.transposed else (6, channels)) + (taps.taps,) * 2)), "f32"
    )
    y = TensorType("C", (number(3), number(6), number(output), number(output)), "f32")
    nest = convolution_nest(conv, x, f, y)
    windows = [Axis(f"p{k}", number(output // window)) for k in range(2)]
    within = [Axis(f"w{k}", number(window)) for k in range(2)]
    places = [algebra.add(algebra.mul(p.index, window), w.index) for p, w in zip(windows, within, strict=True)]
    n, o = nest.domain[:2]
    pooled = Reduce("add", tuple(within), Read("C", (n.index, o.index, *places), "f32"))
    reader = Nest("Y", "f32", (n, o, *windows), Apply("div", (pooled, Constant(float(window**2)))))
    whole = inlined(nest, reader)
    assert whole is not None
    return Case(whole, {"X": x, "F": f}, rule)


def of_depth() -> Case:
    """The sum over the first of two axes of a convolution."""
    conv = Convolution((Taps(3, 1, 1, 1, True),) * 2)
    shapes = {"X": (3, 4, 20, 6), "F": (4, 6, 3, 3), "C": (3, 6, 20, 6)}
    types = {name: TensorType(name, tuple(map(number, shape)), "f32") for name, shape in shapes.items()}
    nest = convolution_nest(conv, types["X"], types["F"], types["C"])
    n, o, y, z = nest.domain
    whole = inlined(nest, Nest("Y", "f32", (n, o, z), Reduce("add", (y,), read("C", n, o, y, z))))
    assert whole is not None
    return Case(whole, types, FACTORS)


CASES: dict[str, Callable[[], Case]] = {
    "product": of_product,
    "product less its own rows": lambda: of_product(bias=True),
    "product with every second place of rows": of_spread_rows,
    "mean of a padded convolution": lambda: of_convolution(Taps(3, 1, 1, 1), 20, 20, 20),
    "mean of a transposed convolution": lambda: of_convolution(Taps(3, transposed=True), 20, 22, 22),
    "mean of as many channels as rows": lambda: of_convolution(Taps(3, transposed=True), 16, 18, 18, channels=16),
    "mean of a transposed convolution with steps": lambda: of_convolution(Taps(3, 2, 1, 1, True), 10, 20, 20),
    "sum over one axis of a convolution": of_depth,
    "windows of a convolution": lambda: of_convolution(Taps(3), 12, 10, 5),
    "windows of a transposed convolution": lambda: of_convolution(Taps(3, 2, 1, 1, True), 10, 20, 2, WINDOWS),
}
EACH = pytest.mark.parametrize("name", CASES)


def have_the_same_numbers(case: Case, found: Exchanged) -> None:
    drawn = np.random.default_rng(5)
    arrays: dict[str, Array] = {
        each.name: drawn.normal(size=[int(computed(s, {})) for s in each.shape]) for each in case.types.values()
    }
    expected = nest_value(case.whole, arrays, {})
    for nest in (*found.before, found.nest):
        arrays[nest.output] = nest_value(nest, arrays, {})
    np.testing.assert_allclose(arrays["Y"], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.share(16)
@EACH
def test_the_sums_are_proved_equal_and_have_the_same_numbers(name: str) -> None:
    case = CASES[name]()
    found = case.found
    assert found.rule == case.rule
    assert found.before
    assert case.proves(found)
    have_the_same_numbers(case, found)


def test_sums_of_filters_that_are_sums_are_tried() -> None:
    """Of a transposed convolution by more steps than taps: summed filters of windows are summed over channels."""
    case = of_convolution(Taps(3, 9, transposed=True), 2, 12, 12)
    assert case.found.before
    have_the_same_numbers(case, case.found)


# -- wrong sums ----------------------------------------------------------------------------------------------


def changed(case: Case, of: Callable[[Expr], Expr], number_of_nest: int = 0) -> Exchanged:
    """The same with the body of one of the new nests changed."""
    found, nests = case.found, list(case.found.before)
    nests[number_of_nest] = evolve(nests[number_of_nest], body=of(nests[number_of_nest].body))
    return evolve(found, before=tuple(nests))


def fewer(body: Expr) -> Expr:
    """Without the last place along the first axis."""
    assert isinstance(body, Reduce)
    first, *rest = body.axes
    return Reduce(body.op, (Axis(first.name, algebra.sub(first.extent, 1)), *rest), body.body)


def moved(body: Expr) -> Expr:
    """One place further along the last axis of what is read."""
    return with_reads(body, lambda each: evolve(each, index=(*each.index[:-1], algebra.add(each.index[-1], 1))))


def turned(body: Expr) -> Expr:
    """With the last two places of what is read exchanged."""
    return with_reads(body, lambda each: evolve(each, index=(*each.index[:-2], each.index[-1], each.index[-2])))


def everywhere(body: Expr) -> Expr:
    """Without the condition on what is read."""
    assert isinstance(body, Reduce)
    return Reduce(body.op, body.axes, body.body.then if isinstance(body.body, Select) else Constant(1.0))


WRONG = {"fewer": fewer, "moved": moved, "everywhere": everywhere}


@pytest.mark.share(16)
@EACH
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_sums_are_not_proved(name: str, wrong: str) -> None:
    case = CASES[name]()
    assert not case.proves(changed(case, WRONG[wrong]))


def test_channels_of_a_sum_are_one_axis_as_those_of_a_convolution() -> None:
    case = of_depth()
    types = {**case.types, **{each.output: each.type for each in case.found.before}}
    sums = reductions(case.found.nest.body)[0]
    found = convolution_of(evolve(case.found.nest, body=sums), types)
    assert found == (Convolution((Taps(3, 1, 1, 1, True),)), "Y_s0", "Y_s1")


def test_columns_for_rows_are_not_proved() -> None:
    """Of matrices as long as wide, whose sums have equal ranges."""
    assert not of_product().proves(changed(of_product(), turned))


@pytest.mark.share(7)
@EACH
def test_the_double_is_not_proved(name: str) -> None:
    case = CASES[name]()
    found = case.found
    assert not case.proves(evolve(found, new=Apply("mul", (found.new, Constant(2.0)))))


def test_a_conversion_to_integers_is_no_identity() -> None:
    """Nor is the place of a maximum compared, or what is no number equal to one."""
    case = of_product()
    m, n = case.whole.domain[0], Axis("n", number(40))
    x = read("X", m, n)

    def proved(one: Expr, other: Expr) -> bool:
        return are_equal(Reduce("add", (n,), one), Reduce("add", (n,), other), {}, case.types, (m,))

    assert proved(Convert("bf16", x), x)
    assert proved(Convert("i64", x), Convert("i64", x))
    assert not proved(Convert("i64", x), x)
    assert not proved(Apply("mul", (x, Constant(float("nan")))), x)
    place = Reduce("argmax", (Axis("k", number(40)),), x)
    assert not are_equal(place, place, {}, case.types, (m,))


@pytest.mark.parametrize("dtype", ["i64", "i32", "i8", "bool"])
def test_a_conversion_to_integers_stays_where_it_is_and_to_its_type(dtype: str) -> None:
    """Those to f32, bf16 and f16 round, which values over the reals leave out: they are the number."""
    case = of_product()
    m, n = case.whole.domain[0], Axis("n", number(40))
    x = read("X", m, n)

    def proved(one: Expr, other: Expr) -> bool:
        return are_equal(one, other, {}, case.types, (m,))

    for rounded in ("f32", "bf16", "f16"):
        assert proved(Reduce("add", (n,), Convert(rounded, x)), Convert(rounded, Reduce("add", (n,), x)))
        assert proved(Convert(dtype, Convert(rounded, x)), Convert(dtype, x))
    for other in {"i64", "i32", "i8", "bool"} - {dtype}:
        assert not proved(Convert(dtype, x), Convert(other, x))
    assert not proved(Reduce("add", (n,), Convert(dtype, x)), Convert(dtype, Reduce("add", (n,), x)))
    assert not proved(Convert(dtype, Apply("add", (x, x))), Apply("add", (Convert(dtype, x), Convert(dtype, x))))


# -- rules that are switched off -------------------------------------------------------------------------------


@pytest.fixture
def without_memory() -> None:
    """No sum is known from before."""
    for each in (binding.prefix, binding._replaced):  # pyright: ignore[reportPrivateUsage]  # its memory
        each.cache_clear()


@pytest.mark.usefixtures("without_memory")
def test_sums_of_equal_ranges_need_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(*_: object) -> None:
        return None

    monkeypatch.setattr(exchanging, "_of_equal_ranges", alike)
    case = of_product()
    assert not case.proves(case.found)
    binding.prefix.cache_clear()


@pytest.mark.usefixtures("without_memory")
def test_sums_over_every_second_place_need_quotients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is read at the place itself, too, so that no sum over all remainders is one over quotients."""
    case = of_spread_rows()

    def none(*_: object) -> None:
        return None

    with monkeypatch.context() as patch:
        patch.setattr(binding, "by_quotients", none)
        assert not case.proves(case.found)
    binding.prefix.cache_clear()
    assert case.proves(case.found)


# -- nests that stay -------------------------------------------------------------------------------------------


def test_what_is_no_sum_of_sums_stays() -> None:
    case = of_product()
    m, n = case.whole.domain[0], Axis("n", number(40))
    plain = Nest("Y", "f32", (m,), Reduce("add", (n,), read("X", m, n)))
    assert exchanged(plain, case.types, {}) is None


def test_a_function_of_a_sum_is_not_summed_before() -> None:
    """A sum of exponentials is not one of what they are of."""
    case = of_product()

    def exponential(body: Expr) -> Expr:
        match body:
            case Reduce(op="add", axes=axes, body=Apply(op="div", args=args)):
                return Reduce("add", axes, Apply("exp", (args[0],)))
            case Apply(op="mul", args=(sums, _)):
                return exponential(sums)
            case _:
                raise AssertionError(body)

    assert exchanged(evolve(case.whole, body=exponential(case.whole.body)), case.types, {}) is None


def test_a_sum_of_few_rows_stays_as_it_takes_no_less() -> None:
    """A product of one row with one column summed."""
    case = of_product()
    m = Axis("m", number(1))
    body = with_reads(case.whole.body, lambda each: each)
    assert exchanged(evolve(case.whole, domain=(m, case.whole.domain[1]), body=body), case.types, {}) is None
