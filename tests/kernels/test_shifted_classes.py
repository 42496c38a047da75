"""Transposed convolutions with the outputs of all classes in a tile: proved, and right when executed; no others are."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from attrs import evolve

from argus.core.query import Budget
from argus.core.verdict import Proved
from argus.kernels.nests.contraction import convolution
from argus.kernels.schedules import shifted_classes
from argus.kernels.schedules.class_tiles import classes_for
from argus.kernels.schedules.shifted_classes import Classes
from argus.language import ProgramTemplate
from argus.nests.convolution import Convolution, Taps
from argus.verifier.program import verify_program
from tests.kernels.test_convolutions import operands, run
from tests.kernels.twins import Edit, twin

NO_RUNS = evolve(Budget(), runs=0)


def of(*axes: tuple[int, int, int]) -> Convolution:
    """Of these taps, steps, and outputs left out."""
    return Convolution(tuple(Taps(taps, stride, 1, pad, transposed=True) for taps, stride, pad in axes))


CASES = {
    "one axis": of((3, 2, 1)),
    "two axes": of((3, 2, 1), (3, 2, 0)),
    "four taps": of((4, 2, 1), (4, 2, 1)),
    "steps along a row": of((3, 1, 0), (3, 2, 1)),
    "steps of rows": of((3, 2, 1), (3, 1, 1)),
    "classes without taps": of((1, 2, 0), (2, 2, 1)),
    "four classes of a row": of((1, 1, 0), (5, 4, 1)),
    "steps around": of((2, 2, 0), (1, 1, 0), (2, 2, 0)),
    "three axes": of((3, 2, 1), (3, 2, 1), (3, 2, 0)),
    "three axes, four taps": of((4, 2, 1), (4, 2, 1), (4, 2, 1)),
}
SHAPES = {
    "bf16": Classes(bk=64),
    "f32": Classes(products=3, bk=16),
    "f32, ahead": Classes(products=3, bk=16, sums=2),
    "f32 in six products": Classes(products=6, bk=16),
    "one row": Classes(rows=1, products=3, bk=16),
    "eight rows": Classes(rows=8, products=3, bk=16, sums=2),
    "two stages": Classes(rows=2, products=3, bk=16, stages=2),
}
QUICK = [("one axis", "one row"), ("two axes", "f32, ahead"), ("classes without taps", "bf16")]
ALL = [
    *QUICK,
    *(("two axes", shape) for shape in ("bf16", "f32", "f32 in six products", "one row", "eight rows", "two stages")),
    *((name, "f32") for name in CASES if name not in ("one axis", "two axes")),
]
SHARE = pytest.mark.share(30, among="all classes in a tile")
CHOSEN = [each if each in QUICK else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]


def template(name: str, shape: str) -> ProgramTemplate:
    return convolution(CASES[name], dtype_of(shape), {"": SHAPES[shape]})


def dtype_of(shape: str) -> str:
    return "f32" if SHAPES[shape].products > 1 else "bf16"


@SHARE
@pytest.mark.parametrize(("name", "shape"), CHOSEN)
def test_all_classes_of_a_tile_are_proved_for_all_sizes(name: str, shape: str) -> None:
    verdict = verify_program(template(name, shape).trace(""), solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert "assert_equals(Y" in "\n".join(verdict.results)


@SHARE
@pytest.mark.parametrize(("name", "shape"), CHOSEN)
def test_the_text_of_the_launches_computes_all_classes(name: str, shape: str) -> None:
    conv, dtype = CASES[name], dtype_of(shape)
    x, f, expected = operands(conv, dtype)

    found = run(template(name, shape).trace(""), conv, {"X": x, "F": f}, expected.shape)

    *_, magnitudes = operands(conv, dtype, np.abs)
    bits = {6: 22, 3: 16}.get(SHAPES[shape].products)
    allowed = 2**-bits * magnitudes.max() if bits else 5e-3 * np.abs(expected).max()
    assert np.abs(found.astype(np.float64) - expected).max() <= allowed


EDITS: dict[str, tuple[str, ModuleType, Edit]] = {
    "classes of columns exchanged": ("two axes", shifted_classes, ("eq(w % side, b)", "eq(w % side, side - 1 - b)")),
    "classes of rows exchanged": (
        "two axes",
        shifted_classes,
        ("high * wg + r) + a", "high * wg + r) + steps - 1 - a"),
    ),
    "rows of a warpgroup exchanged": ("two axes", shifted_classes, ("high * wg + r)", "high * wg + high - 1 - r)")),
    "rows of the other warpgroup": ("two axes", shifted_classes, ("high * wg + r)", "high * (1 - wg) + r)")),
    "the same row again": ("two axes", shifted_classes, ("cfg.rows * d + r + inner", "cfg.rows * d + 0 * r + inner")),
    "filters of another class": (
        "two axes",
        shifted_classes,
        ("self.inner.down.classes + a)", "self.inner.down.classes + 1 - a)"),
    ),
    "a tap off by one": ("two axes", shifted_classes, ("inner.across.moved(u))", "inner.across.moved(u) + 1)")),
    "windows of the part before": (
        "two axes",
        shifted_classes,
        ("r * wide // once + j)", "r * wide // once + j - j % 2)"),
    ),
    "classes in another order": (
        "two axes",
        shifted_classes,
        ("accs[each] for each in classes", "accs[each] for each in reversed(classes)"),
    ),
    "the first class alone": (
        "two axes",
        shifted_classes,
        ("accs[each] for each in classes", "accs[classes[0]] for each in classes"),
    ),
    "products of the last class not waited for": (
        "two axes",
        shifted_classes,
        ("if waited < number <= last else 0", "if waited < number else 0"),
    ),
    "released too early": ("two axes", shifted_classes, ("if waited == last:", "if waited == max(last - 1, 0):")),
    "filters of the row after": (
        "steps around",
        shifted_classes,
        ("first * axis.classes + y %", "first * axis.classes + (y + 1) %"),
    ),
}


@SHARE
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    case, module, edit = EDITS[name]

    made = twin(template(case, "f32, ahead"), "", module, edit)

    assert not isinstance(verify_program(made, solver="z3", budget=NO_RUNS).verdict, Proved), name


def sizes(conv: Convolution, channels: int, *places: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    inputs = tuple(-(-place // axis.stride) for place, axis in zip(places, conv.axes, strict=True))
    return (8, channels, *inputs), (8, 64, *places)


def test_tiles_have_the_rows_that_leave_few_windows_without_outputs() -> None:
    conv = CASES["two axes"]
    wide = classes_for(conv, *sizes(conv, 64, 256, 256), products=3)
    small = classes_for(conv, *sizes(conv, 64, 64, 64), products=3)
    assert wide is not None
    assert small is not None
    assert (wide.rows, wide.bk, wide.sums) == (1, 32, 2)
    assert (small.rows, small.across) == (4, 32)


def test_classes_of_few_taps_have_room_for_the_sums_of_one() -> None:
    """Nine places of a window for sixteen taps; their stages have fewer channels, too."""
    conv = CASES["four taps"]
    found = classes_for(conv, *sizes(conv, 64, 513, 513), products=3)
    assert found is not None
    assert (found.bk, found.sums) == (16, 1)
    assert classes_for(conv, *sizes(conv, 64, 513, 513), products=6) is None  # the stages are larger than the memory


@pytest.mark.parametrize(
    "conv",
    [
        of((3, 1, 1), (3, 1, 1)),
        of((3, 3, 1), (3, 2, 1)),
        of((5, 2, 2), (5, 2, 2), (5, 2, 2)),
        Convolution((Taps(3, 2, 2, 1, transposed=True),) * 2),
        Convolution((Taps(3, 2, 1, 1),) * 2),
        evolve(of((3, 2, 1), (3, 2, 1)), groups=2),
    ],
    ids=["without steps", "six classes", "many taps", "gaps", "not transposed", "groups"],
)
def test_others_have_no_tiles_of_all_classes(conv: Convolution) -> None:
    assert classes_for(conv, *sizes(conv, 64, *(65,) * len(conv.axes)), products=3) is None
