"""Convolutions by FMAs: proved by the nest's claim for all sizes, right when executed, and twins not proved."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest
from attrs import evolve

from argus.core import algebra
from argus.core.index import Index
from argus.core.query import Budget
from argus.core.verdict import Proved, Refuted
from argus.emit.cuda.text import cuda_text
from argus.kernels.nests import direct, made
from argus.kernels.nests.convolution_costs import is_for_matrix_units
from argus.kernels.nests.direct_tiles import Direct, direct_for
from argus.language import Template
from argus.nests.affine import computed
from argus.nests.canonical import Canonical, canonical
from argus.nests.convolution import Convolution, Taps, convolution_nest
from argus.nests.convolution_forms import ConvolutionForm, convolution_form
from argus.nests.nest import TensorType, size
from argus.runtime.cpu.validate import validate
from argus.verifier.kernel import verify

NO_RUNS = evolve(Budget(), runs=0)
AXES = 6


def of(*axes: Taps, groups: int = 1) -> Convolution:
    return Convolution(axes, groups)


def turned(taps: int, stride: int = 1, dilation: int = 1, pad: int = 0) -> Taps:
    return Taps(taps, stride, dilation, pad, transposed=True)


CASES: dict[str, tuple[Convolution, Direct]] = {
    "one axis": (of(Taps(3, pad=1)), Direct(8, 1, 2)),
    "one axis, several columns": (of(Taps(3, pad=1)), Direct(4, 4, 2, 2)),
    "one axis, steps": (of(Taps(3, 3, 4)), Direct(4, 4, 2, 1)),
    "several channels at once": (of(Taps(1), Taps(1)), Direct(4, 4, 2, at_once=4)),
    "one axis, several channels": (of(Taps(3, 3, 4)), Direct(4, 4, 2, 1, at_once=4)),
    "one axis, transposed": (of(turned(3, 2, 2, 1)), Direct(4, 4, 2, at_once=2)),
    "two axes": (of(Taps(3), Taps(2)), Direct(4, 4, 2)),
    "padded": (of(Taps(3, pad=1), Taps(3, pad=1)), Direct(4, 4, 2, 2, 16)),
    "steps of four": (of(Taps(11, 4, 1, 2), Taps(11, 4, 1, 2)), Direct(4, 2, 2)),
    "steps of two": (of(Taps(3, 2, pad=1), Taps(3, 2)), Direct(4, 2, 2)),
    "gaps": (of(Taps(3, pad=2, dilation=2), Taps(3, dilation=3)), Direct(4, 4, 2)),
    "three axes": (of(Taps(3), Taps(3), Taps(3)), Direct(4, 4, 2, 2)),
    "one tap": (of(Taps(3), Taps(3), Taps(1)), Direct(4, 4, 2, 1, 16)),
    "many taps": (of(Taps(3), Taps(5), Taps(9)), Direct(4, 4, 2)),
    "groups": (of(Taps(3, pad=1), Taps(3), groups=4), Direct(4, 4, 2)),
    "transposed": (of(turned(3), turned(3, pad=1)), Direct(4, 4, 2)),
    "transposed, three axes": (of(turned(3, pad=1), turned(3), turned(2)), Direct(4, 4, 2)),
    "transposed steps": (of(turned(3, 2, pad=1), turned(4, 2, pad=1)), Direct(4, 2, 2)),
    "transposed steps, three axes": (of(*[turned(3, 2, pad=1)] * 3), Direct(4, 2, 2)),
    "transposed steps and gaps": (of(turned(3, 2, 2, 1)), Direct(8, 1, 2)),
    "transposed steps and gaps, three axes": (of(*[turned(3, 2, 2, 1)] * 3), Direct(4, 2, 2)),
    "transposed steps of five and gaps": (of(turned(3, 5, 2, 1), turned(3, 5, 2, 1)), Direct(2, 1, 2)),
    "transposed groups, three axes": (of(*[turned(3, 2, pad=1)] * 3, groups=2), Direct(4, 2, 2)),
    "transposed groups": (of(turned(3, 2, 2, 1), turned(5, 3, 1, 2), groups=4), Direct(4, 2, 2)),
}
SLOW = {
    "transposed groups, three axes",
    "transposed steps of five and gaps",
    "transposed steps, three axes",
    "transposed steps and gaps, three axes",
}


def form_of(conv: Convolution, inputs: int | None = None) -> Canonical:
    """Of tensors of any size; with groups, of three channels of inputs and eight of outputs in each."""
    spaces = range(len(conv.axes))
    n: Index = size("N") if inputs is None else algebra.const(inputs)
    c, o, b = (size(each) for each in "COB")
    if conv.groups > 1:
        c, o = (algebra.const(each * conv.groups) for each in (3, 8))
        b = algebra.const(8 if conv.transposed else 3)
    first, second = (c, o) if conv.transposed else (o, c)
    taps = (algebra.const(axis.taps) for axis in conv.axes)
    x = TensorType("X", (n, c, *(size(f"I{axis}") for axis in spaces)), "f32")
    f = TensorType("F", (first, second if conv.groups == 1 else b, *taps), "f32")
    y = TensorType("Y", (n, o, *(size(f"Y{axis}") for axis in spaces)), "f32")
    return canonical((convolution_nest(conv, x, f, y),), {"X": x, "F": f}, {}, AXES, join=False)


def template(name: str) -> Template:
    conv, config = CASES[name]
    return made.template(form_of(conv), direct.direct, config, "made")


def sizes_of(conv: Convolution, form: Canonical) -> dict[str, int]:
    """Of a small case: of two inputs, three channels and ten of outputs, as large as the filters need."""
    inputs = [max(3 + axis, a.dilation * (a.taps - 1) + 1 - 2 * a.pad) for axis, a in enumerate(conv.axes)]
    given = {"N": 2, "C": 3, "O": 10}
    for axis, (a, extent) in enumerate(zip(conv.axes, inputs, strict=True)):
        reach = a.dilation * (a.taps - 1)
        made_of = (extent - 1) * a.stride - 2 * a.pad + reach + 1
        given |= {
            f"I{axis}": extent,
            f"Y{axis}": made_of if a.transposed else (extent + 2 * a.pad - reach - 1) // a.stride + 1,
        }
    return {name: int(computed(extent, given)) for name, extent in form.sizes.items()}


QUICK = [each for each in CASES if each not in SLOW]
NAMES = [each if each in QUICK else pytest.param(each, marks=pytest.mark.nightly) for each in CASES]


@pytest.mark.share(64, among="direct convolutions")
@pytest.mark.parametrize("name", NAMES)
def test_a_convolution_is_proved_for_all_sizes(name: str) -> None:
    verdict = verify(template(name).trace(), solver="z3", budget=NO_RUNS).verdict

    assert isinstance(verdict, Proved), verdict
    assert {"I4", "I39"} <= dict(verdict.coverage).keys()


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_cvc5_proves_them_too(name: str) -> None:
    verdict = verify(template(name).trace(), solver="cvc5", budget=NO_RUNS).verdict
    assert isinstance(verdict, Proved), verdict


@pytest.mark.share(64, among="direct convolutions")
@pytest.mark.parametrize("name", CASES)
def test_the_text_computes_the_claim(name: str) -> None:
    conv, _ = CASES[name]
    found = validate(template(name).trace(), [sizes_of(conv, form_of(conv))], seeds=1)
    assert all(each.right for each in found.trials), found
    assert any(each.elements for each in found.trials)


@pytest.mark.share(64, among="direct convolutions")
def test_one_input_and_groups_are_told_from_the_canonical_form() -> None:
    plain, groups = of(Taps(3), Taps(3)), of(turned(3, 2), turned(3, 2), groups=4)

    found = [_known(form_of(plain, 1)), _known(form_of(groups)), _known(form_of(groups, 1))]

    assert found[0] == ConvolutionForm(plain, "X0", "X1", batched=False)
    assert found[1] == ConvolutionForm(of(*groups.axes), "X0", "X1", grouped=True)
    assert found[2] == ConvolutionForm(of(*groups.axes), "X0", "X1", batched=False, grouped=True)


def _known(form: Canonical) -> ConvolutionForm | None:
    return convolution_form(form.nests[0], {each.type.name: each.type for each in form.parameters})


def test_many_channels_are_for_matrix_units() -> None:
    plain, gaps = form_of(of(Taps(3), Taps(3))), form_of(of(turned(3, 2, 2)))
    assert is_for_matrix_units(plain, dict.fromkeys(plain.sizes, 64))
    assert not is_for_matrix_units(plain, dict.fromkeys(plain.sizes, 64) | {"N4": 3, "N6": 3})
    assert not is_for_matrix_units(gaps, dict.fromkeys(gaps.sizes, 256))


def test_tiles_follow_the_sizes() -> None:
    plain = ConvolutionForm(of(Taps(3), Taps(3)), "X", "F")
    assert direct_for(plain, 3, 64, [62, 62]) == Direct(8, 8, 8, 1, 32)
    assert direct_for(plain, 3, 16, [62, 10]).width == 16
    assert direct_for(plain, 3, 16, [62, 62]).outputs == 16
    assert direct_for(ConvolutionForm(of(Taps(1)), "X", "F"), 64, 128, [4096]).at_once == 8
    assert direct_for(plain, 64, 2, [5, 6]).at_once == 4  # sums of 72 products, one after another, are not proved
    assert direct_for(ConvolutionForm(of(Taps(7)), "X", "F"), 64, 128, [30]).at_once == 4
    assert direct_for(ConvolutionForm(of(turned(3, 2), turned(3, 2)), "X", "F"), 64, 2, [5, 6]).at_once == 8


def test_classes_without_taps_have_no_sums() -> None:
    gaps = ConvolutionForm(of(turned(3, 2, 2, 1), turned(3, 2, 2, 1)), "X", "F")
    found = direct_for(gaps, 32, 64, [66, 66])
    assert (found.each, found.rows) == (8, 4)
    assert [axis.summed for axis in gaps.conv.axes] == [(1,), (1,)]


EDITS: dict[str, tuple[str, tuple[str, str]]] = {
    "a tap off by one": ("padded", ("* self.down.step + shift, w", "* self.down.step, w")),
    "another column": (
        "padded",
        (
            "column = across.step * self.wide * self.column + own + first",
            "column = across.step * self.wide * self.column + own",
        ),
    ),
    "a column of the first tap": ("padded", ("stage.pitch + w + first,)", "stage.pitch + w,)")),
    "the channel before": (
        "two axes",
        ("channel = cfg.at_once * c + number", "channel = cfg.at_once * c + number - 1"),
    ),
    "the channel twice": (
        "several channels at once",
        ("channel = cfg.at_once * c + number", "channel = cfg.at_once * c"),
    ),
    "taps of the first channel": (
        "one axis, several channels",
        ("tap = number * self.taps + (t1", "tap = 0 * self.taps + (t1"),
    ),
    "steps of one row": ("steps of two", ("row = down.step * cfg.rows", "row = cfg.rows")),
    "steps of one column": ("steps of four", ("else across.step * at", "else at")),
    "columns in their order": ("one axis, steps", ("own = stage.column(at) if", "own = at if")),
    "columns of the tile before": (
        "one axis, several columns",
        ("return (cfg.width * h + w + first,)", "return (w + first,)"),
    ),
    "gaps of one more": ("three axes", ("axis.stride * y + axis.dilation * t", "axis.stride * y + 2 * t")),
    "filters of another iteration": (
        "three axes",
        ("self._add(held[i % 2], inputs[i % 2])", "self._add(held[(i + 1) % 2], inputs[i % 2])"),
    ),
    "inputs of another iteration": (
        "two axes",
        ("self._add(held[i % 2], inputs[i % 2])", "self._add(held[i % 2], inputs[(i + 1) % 2])"),
    ),
    "copies are not waited for": ("padded", ("cp_async.wait(0)", "cp_async.wait(1)")),
    "no barrier": ("padded", ("            sync()\n", "")),
    "the group after": (
        "groups",
        ("self.group * self._channels + channel", "(self.group + 1) * self._channels + channel"),
    ),
    "classes exchanged": ("transposed steps", ("eq(w % columns, a2)", "eq((w + 1) % columns, a2)")),
    "rows of the other class": ("transposed steps", ("eq(r % rows, a1)", "eq((r + 1) % rows, a1)")),
    "a window that begins later": (
        "transposed steps and gaps, three axes",
        ("axis.moved(t) - axis.lead", "axis.moved(t)"),
    ),
}


def edited(name: str) -> made.Schedule:
    """The schedule with one edit of its text."""
    text, (old, new) = inspect.getsource(direct), EDITS[name][1]
    assert text.count(old) == 1, old
    module = ModuleType(direct.__name__)
    exec(compile(text.replace(old, new), direct.__file__, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 reason: our text
    return vars(module)["direct"]


def wrong(name: str) -> Template:
    """The template with one edit of its text, and the claim as it was."""
    conv, config = CASES[EDITS[name][0]]
    return made.template(form_of(conv), edited(name), config, "made")


LONG = ("steps of one column", "classes exchanged", "rows of the other class", "a window that begins later")
"""Twins whose proof is looked for for up to a minute."""


@pytest.mark.share(64, among="direct convolutions")
@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.nightly] * (each in LONG)) for each in EDITS])
def test_a_twin_of_one_edit_is_not_proved(name: str) -> None:
    assert not isinstance(verify(wrong(name).trace(), solver="z3", budget=NO_RUNS).verdict, Proved), name


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["another column", "classes exchanged", "no barrier"])
def test_a_twin_is_refuted_by_a_run(name: str) -> None:
    found = verify(wrong(name).trace(), solver="z3").verdict
    assert isinstance(found, Refuted), found


def test_offsets_of_stores_are_multiples_of_strides_that_are_computed_once() -> None:
    text = cuda_text(template("two axes").trace()).text
    assert "const long step1 = (long)N2_ * (long)N3_;" in text
    assert "first0 + 3 * step1 + 3 * step2" in text
