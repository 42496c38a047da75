"""Convolutions as products of shifted rows: proved for all sizes, right numbers, and wrong windows are not proved."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
import torch
from attrs import evolve

from argus.core import algebra
from argus.core.dtype import DTYPES
from argus.core.index import Const
from argus.core.ir import Buffer, Program
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted, Unknown
from argus.core.walk import evaluate
from argus.interp.programs import launch_sizes
from argus.kernels.nests.contraction import convolution
from argus.kernels.schedules import shifted
from argus.kernels.schedules.shifted import Shifted
from argus.language import ProgramTemplate
from argus.nests.convolution import Convolution, Taps, convolution_nest, convolution_of, nest_of_sizes
from argus.nests.nest import TensorType
from argus.runtime.cpu.validate import run_text
from argus.verifier.program import verify_program
from tests.kernels.twins import Edit, twin

Array = npt.NDArray[np.generic]
NO_RUNS = evolve(Budget(), runs=0)


def of(*axes: Taps, groups: int = 1) -> Convolution:
    return Convolution(axes, groups)


def transposed(taps: int, stride: int = 1, dilation: int = 1, pad: int = 0) -> Taps:
    return Taps(taps, stride, dilation, pad, transposed=True)


CASES = {
    "one axis": of(Taps(3)),
    "padded": of(Taps(3, pad=1), Taps(3, pad=1)),
    "steps and gaps": of(Taps(3, stride=3, dilation=4)),
    "steps of two": of(Taps(3, stride=2, pad=1), Taps(3, stride=2, pad=1)),
    "steps along a row": of(Taps(3, pad=1), Taps(4, stride=2, pad=1)),
    "gaps": of(Taps(5, pad=2, dilation=2), Taps(9, pad=4, dilation=3)),
    "three axes": of(Taps(3), Taps(5), Taps(7)),
    "groups": of(Taps(3, pad=1), Taps(3), groups=4),
    "transposed": of(transposed(3), transposed(7, pad=1)),
    "transposed, three axes": of(transposed(3), transposed(2), transposed(3)),
    "transposed steps": of(transposed(3, stride=2, pad=1)),
    "transposed steps and gaps": of(transposed(3, stride=2, pad=1, dilation=2)),
    "transposed steps, two axes": of(transposed(3, stride=2, pad=1), transposed(3, stride=2)),
    "transposed groups": of(transposed(3, stride=2, pad=1), groups=2),
}
UNKNOWN = {"groups", "transposed groups", "transposed steps and gaps"}
"""Those that are not proved yet: what a launch leaves of groups, and of such classes, is not followed."""
SHAPES = {
    "bf16": Shifted(),
    "f32": Shifted(products=6, bk=32, stages=3),
    "f32 in three products": Shifted(products=3, bk=32),
    "rows of 8": Shifted(128, 40, rows=5, laid=16),
    "rows of 64": Shifted(64, 128, rows=2, laid=128),
    "rows of 8 in f32": Shifted(128, 24, products=6, bk=32, stages=3, rows=3, laid=16),
}
"""By the type of tensors, with several rows of outputs in a tile or one."""
ROWS = [
    ("one axis", "f32 in three products"),
    ("padded", "rows of 8"),
    ("steps of two", "rows of 8 in f32"),
    ("padded", "rows of 64"),
]
ALL = [*((name, shape) for name in CASES for shape in ("bf16", "f32")), *ROWS]
QUICK = [("steps and gaps", "bf16"), ("one axis", "f32"), ("padded", "rows of 8")]
OUTPUTS = {"rows of 64": (6, 33)}
"""Places of inputs, where there are more than a case needs."""


def template(name: str, shape: str) -> ProgramTemplate:
    return convolution(CASES[name], dtype_of(shape), {"": SHAPES[shape]})


def dtype_of(shape: str) -> str:
    return "f32" if SHAPES[shape].products > 1 else "bf16"


@pytest.mark.share(80, among="convolutions")
@pytest.mark.parametrize(
    ("name", "shape"), [each if each in QUICK else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_a_convolution_is_proved_for_all_sizes(name: str, shape: str) -> None:
    verdict = verify_program(template(name, shape).trace(""), solver="z3", budget=NO_RUNS).verdict

    if name in UNKNOWN:
        assert isinstance(verdict, Unknown)
        return
    assert isinstance(verdict, Proved), verdict
    assert "assert_equals(Y" in "\n".join(verdict.results)


@pytest.mark.share(3)
def test_sums_over_three_axes_are_proved_with_few_terms() -> None:
    """They are compared term by term: by their normal forms, hundreds of sums, so few are not enough."""
    program = template("transposed, three axes", "rows of 8 in f32").trace("")

    verdict = verify_program(program, solver="z3", budget=evolve(NO_RUNS, terms=100_000)).verdict

    assert isinstance(verdict, Proved), verdict


@pytest.mark.share(80, among="convolutions")
@pytest.mark.parametrize(
    ("name", "shape"), [each if each in QUICK else pytest.param(*each, marks=pytest.mark.nightly) for each in ALL]
)
def test_the_text_of_the_launches_computes_it(name: str, shape: str) -> None:
    conv, dtype, places = CASES[name], dtype_of(shape), OUTPUTS.get(shape, ())
    x, f, expected = operands(conv, dtype, places=places)

    found = run(template(name, shape).trace(""), conv, {"X": x, "F": f}, expected.shape)

    *_, magnitudes = operands(conv, dtype, np.abs, places)
    bits = {6: 22, 3: 16}.get(SHAPES[shape].products)
    allowed = 2**-bits * magnitudes.max() if bits else 5e-3 * np.abs(expected).max()
    assert np.abs(found.astype(np.float64) - expected).max() <= allowed


def operands(
    conv: Convolution, dtype: str, of: Callable[[Array], Array] = np.positive, places: tuple[int, ...] = ()
) -> tuple[Array, Array, npt.NDArray[np.float64]]:
    """Inputs and filters in their type, and the convolution of `of` them in float64. places: of inputs."""
    random, kind = np.random.default_rng(0), next(each for each in DTYPES if each.name == dtype).numpy
    least = [max(5 + axis, a.dilation * (a.taps - 1) + 1 - 2 * a.pad) for axis, a in enumerate(conv.axes)]
    extents = places or least
    c, o = 3 * conv.groups, 2 * conv.groups
    first, second = (c, o) if conv.transposed else (o, c)
    x = of(random.standard_normal((2, c, *extents))).astype(np.float32).astype(kind)
    shape = (first, second // conv.groups, *(axis.taps for axis in conv.axes))
    f = of(random.standard_normal(shape)).astype(np.float32).astype(kind)
    names = [tuple(getattr(axis, name) for axis in conv.axes) for name in ("stride", "pad", "dilation")]
    function = getattr(torch.nn.functional, f"conv{'_transpose' if conv.transposed else ''}{len(conv.axes)}d")
    given = (torch.tensor(each.astype(np.float64)) for each in (x, f))
    options = dict(zip(("stride", "padding", "dilation"), names, strict=True))
    return x, f, function(*given, groups=conv.groups, **options).numpy()


def run(program: Program, conv: Convolution, given: dict[str, Array], shape: tuple[int, ...]) -> Array:
    """What the texts of the launches compute, in memory that holds NaN."""
    x, f = given["X"], given["F"]
    sizes = {"N": x.shape[0], "C": x.shape[1], "O": shape[1], "B": f.shape[1]}
    sizes |= {
        f"{letter}{axis}": of[2 + axis]
        for letter, of in (("I", x.shape), ("Y", shape))
        for axis in range(len(conv.axes))
    }
    env = {symbol: sizes[symbol.name] for symbol in program.sizes}
    memory: dict[Buffer, Array] = {}
    for each in (*program.parameters, *program.workspaces):
        extents = [int(np.asarray(evaluate(extent, env))) for extent in each.shape]
        memory[each] = given.get(each.name, np.full(extents, np.nan, np.float32).astype(each.dtype.numpy))
    for launch in program.launches:
        own = {symbol.name: n for symbol, n in launch_sizes(launch, env).items()}
        made = run_text(launch.kernel, {n: memory[b] for n, b in launch.arguments.items()}, own)
        memory |= {launch.arguments[name]: array for name, array in made.items()}
    return next(array for buffer, array in memory.items() if buffer.name == "Y")


@pytest.mark.parametrize("name", CASES)
def test_a_nest_is_known_as_its_convolution(name: str) -> None:
    conv = CASES[name]
    extents = tuple(algebra.const(each) for each in (8, 4 * conv.groups, 30, 31, 32)[: 2 + len(conv.axes)])
    taps = tuple(algebra.const(axis.taps) for axis in conv.axes)
    x = TensorType("input", extents, "f32")
    f = TensorType("weight", (extents[1], algebra.const(4), *taps), "f32")
    nest = convolution_nest(conv, x, f, TensorType("output", extents, "f32"))

    found = convolution_of(nest, {"input": x, "weight": f})

    assert found is not None
    same = convolution_nest(found[0], x, f, TensorType("output", extents, "f32"))
    assert (same, found[1:]) == (nest, ("input", "weight"))
    assert isinstance(extents[0], Const)


def test_a_product_of_matrices_is_no_convolution() -> None:
    nest, _ = nest_of_sizes(of(Taps(3)), "f32")
    assert convolution_of(evolve(nest, body=evolve(nest.body, op="max")), {}) is None


OF_ROWS = ("(*inputs[:-1], inputs[-1] + r)", "cfg.rows * rows[-1] + number // parts")
"""What says which row a tile loads, and which it stores."""
EDITS: dict[str, tuple[str, ModuleType, Edit]] = {
    "the same row again": ("padded", shifted, (OF_ROWS[0], "(*inputs[:-1], inputs[-1] + 0 * r)")),
    "rows in another order": (
        "padded",
        shifted,
        (OF_ROWS[1], "cfg.rows * rows[-1] + cfg.rows - 1 - number // parts"),
    ),
    "a tap off by one": ("padded", shifted, ("moved = [axis.moved(t) for", "moved = [axis.moved(t) + 1 for")),
    "padded by one less": ("padded", shifted, ("a.step * i + p - a.lead for", "a.step * i + p - a.lead + 1 for")),
    "without steps": ("steps and gaps", shifted, ("a.step * i + p - a.lead for", "i + p - a.lead for")),
    "another phase": ("steps and gaps", shifted, ("(m % axis.step if", "((m + 1) % axis.step if")),
    "gaps of one more": (
        "gaps",
        shifted,
        (
            "axis.moved(t) for axis, t in zip(conv.axes, window",
            "axis.moved(t) + t for axis, t in zip(conv.axes, window",
        ),
    ),
    "channels of the group before": (
        "groups",
        shifted,
        (
            "where(c < channels, g * channels + c, -1), *places",
            "where(c < channels, (g - 1) * channels + c, -1), *places",
        ),
    ),
    "the filters of another group": (
        "groups",
        shifted,
        ("return g * outputs + o, c", "return (groups - 1 - g) * outputs + o, c"),
    ),
    "not flipped": (
        "transposed",
        shifted,
        ("if not axis.transposed or axis.falls:", "if not axis.transposed:"),
    ),
    "taps of the other class": (
        "transposed steps",
        shifted,
        ("place = of_class + axis.pad - axis.stride", "place = of_class + 1 + axis.pad - axis.stride"),
    ),
    "taps of the other class, two axes": (
        "transposed steps, two axes",
        shifted,
        ("place = of_class + axis.pad - axis.stride", "place = of_class + 1 + axis.pad - axis.stride"),
    ),
    "classes exchanged": (
        "transposed steps",
        shifted,
        ("z = z * axis.classes + y % axis.classes", "z = z * axis.classes + (y + 1) % axis.classes"),
    ),
    "products of a stage are not waited for": ("one axis", shifted, ("wgmma.wait(0)", "wgmma.wait(1)")),
}


def wrong(name: str) -> Program:
    case, module, edit = EDITS[name]
    return twin(template(case, "rows of 8" if edit[0] in OF_ROWS else "bf16"), "", module, edit)


@pytest.mark.share(80, among="convolutions")
@pytest.mark.parametrize("name", EDITS)
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    assert not isinstance(verify_program(wrong(name), solver="z3", budget=NO_RUNS).verdict, Proved), name


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["without steps", "another phase"])
def test_a_twin_with_another_window_is_refuted_by_numbers(name: str) -> None:
    found = verify_program(wrong(name), solver="z3").verdict

    assert isinstance(found, Refuted), found
    assert found.counterexample.code == "I39"
