"""The listings of tests/corpus/traced in the interpreter: against float64, without violations; and with faults."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

import argus
from argus.core import algebra
from argus.core.check import check_program
from argus.core.diagnostic import ArgusError
from argus.core.ir import Assert, Kernel, Products, Program, Stmt
from argus.interp.interpret import interpret
from argus.interp.programs import run_program
from argus.interp.run import Outcome, run
from argus.interp.search.schedule import Schedule, directed
from argus.language import ProgramTemplate, Template
from argus.testing.mutation import mutated_program
from property_tests.programs import CORPUS

Array = npt.NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
LATE, MIXED = Schedule("late", 0, "lowest"), Schedule("mixed", 3)
ROUNDED = 2.0**-7
"""Of a result that bf16 holds, and that went through bf16 once before."""


def namespace(name: str, *edits: tuple[str, str]) -> dict[str, object]:
    """What a listing defines, with some of its text replaced."""
    path = CORPUS / "traced" / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    found: dict[str, object] = {"__name__": name}
    exec(compile(text, str(path), "exec"), found)  # noqa: S102 reason: a corpus file
    return found


def kernel(name: str, family: str, config: str, *edits: tuple[str, str]) -> Kernel:
    found = namespace(name, *edits)[family]
    assert isinstance(found, Template)
    return found.trace(config)


def program(name: str, family: str, *edits: tuple[str, str]) -> Program:
    found = namespace(name, *edits)[family]
    assert isinstance(found, ProgramTemplate)
    return found.trace()


def codes(outcome: Outcome) -> set[str]:
    return {violation.code for violation in outcome.violations}


def normal(seed: int, *shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def small(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(BF16)


def wide(array: Array) -> npt.NDArray[np.float64]:
    return array.astype(np.float64)


# -- rows ------------------------------------------------------------------------------------------------------


ROWS = [("hopper", 4), ("hopper", 2052), ("cdna3", 1000), ("cdna3", 2052), ("any_length", 1), ("any_length", 1027)]


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize(("config", "length"), ROWS)
def test_softmax(config: str, length: int) -> None:
    made, x = kernel("softmax", "softmax", config), 3 * normal(1, 2, length)
    powers = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    for schedule in directed(made):
        outcome = run(made, {"R": 2, "N": length}, {"X": x}, schedule)
        assert outcome.violations == ()
        assert np.allclose(outcome.arrays["Y"], powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=0)


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize(("config", "length"), ROWS)
def test_layer_norm(config: str, length: int) -> None:
    made = kernel("layer_norm", "layer_norm", config)
    x, g, b = 2 * normal(1, 2, length) + 1, normal(2, length), normal(3, length)
    centred = wide(x) - wide(x).mean(1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * g + b
    for schedule in directed(made):
        outcome = run(made, {"R": 2, "N": length}, {"X": x, "G": g, "B": b}, schedule)
        assert outcome.violations == ()
        assert np.allclose(outcome.arrays["Y"], wanted, rtol=0, atol=1e-5)


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize(("config", "length"), ROWS[:4])
def test_scan(config: str, length: int) -> None:
    made, x = kernel("scan", "scan", config), normal(1, 2, length)
    for schedule in directed(made):
        outcome = run(made, {"R": 2, "N": length}, {"X": x}, schedule)
        assert outcome.violations == ()
        assert np.allclose(outcome.arrays["Y"], wide(x).cumsum(1), rtol=0, atol=1e-4)


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("heads.index[0] < wave", "heads.index[0] <= wave"), "n = 0 is counted twice"),
        (("lane.shift(0, 1, fill=0.0)", "lane"), "n = 0 is counted twice"),
        (("carry += heads.sum(0)", "carry[:] = heads.sum(0)"), "n = 0 is missing"),
    ],
)
def test_a_wrong_scan_sums_other_elements(edit: tuple[str, str], message: str) -> None:
    """Of a row of three chunks, the last of which needs what both before it hold."""
    found = run(kernel("scan", "scan", "cdna3", edit), {"R": 1, "N": 4100}, values=False).violations
    assert [violation.code for violation in found] == ["I3"]
    assert found[0].message.endswith(message)


def test_padding_that_a_sum_counts_is_reported() -> None:
    made = kernel("softmax", "softmax", "hopper", ("edge=-inf", "edge=0"))
    found = run(made, {"R": 1, "N": 12}, values=False).violations
    assert {violation.message for violation in found} == {
        "the sum over `n` is not [0, N): it contains values without `n`"
    }


def test_a_fold_of_registers_that_hold_nothing_is_reported() -> None:
    made = kernel("softmax", "softmax", "hopper", ("high[:], total[:] = -inf, 0.0", "total[:] = 0.0"))
    assert "I38" in codes(run(made, {"R": 1, "N": 12}))


# -- convolutions ----------------------------------------------------------------------------------------------


def convolved(x: Array, w: Array, stride: int, pad: int, dilation: int) -> npt.NDArray[np.float64]:
    """Y[b, p, q, o], from X[b, h, w, c] and W[o, r, s, c]."""
    (batch, rows, columns, channels), (out, height, width, _) = x.shape, w.shape
    padded = np.zeros((batch, rows + 2 * pad, columns + 2 * pad, channels))
    padded[:, pad : pad + rows, pad : pad + columns] = wide(x)
    p, q = ((n + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for n, k in ((rows, height), (columns, width)))
    total = np.zeros((batch, p, q, out))
    for r in range(height):
        for s in range(width):
            under = padded[:, r * dilation :: stride, s * dilation :: stride][:, :p, :q]
            total += under @ wide(w)[:, r, s].T
    return total


CONVOLUTIONS = {"same": (1, 1, 1, (3, 3)), "strided": (2, 3, 1, (3, 2)), "dilated": (1, 2, 2, (3, 3))}


@pytest.mark.parametrize("config", CONVOLUTIONS)
def test_convolution(config: str) -> None:
    stride, pad, dilation, window = CONVOLUTIONS[config]
    x, w = small(1, 2, 7, 6, 8), small(2, 5, *window, 8)
    wanted = convolved(x, w, stride, pad, dilation)
    made = kernel("convolution", "conv2d", config)
    sizes = {"B": 2, "IH": 7, "IW": 6, "C": 8, "O": 5, "R": window[0], "S": window[1]}
    for schedule in (LATE, MIXED):
        outcome = run(made, sizes | {"P": wanted.shape[1], "Q": wanted.shape[2]}, {"X": x, "W": w}, schedule)
        assert outcome.violations == ()
        assert np.array_equal(outcome.arrays["Y"], wanted.astype(BF16))


def test_products_at_other_places_are_reported() -> None:
    """The claim of a window one row further down."""
    made = kernel("convolution", "conv2d", "same")

    def moved(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Assert) or not isinstance(stmt.claim, Products):
            return stmt
        pairs = tuple(((a[0], algebra.add(a[1], 1), *a[2:]), b) for a, b in stmt.claim.products)
        return evolve(stmt, claim=evolve(stmt.claim, products=pairs))

    changed = evolve(made, prologue=tuple(moved(stmt) for stmt in made.prologue))
    sizes = {"B": 1, "IH": 5, "IW": 4, "C": 8, "O": 3, "R": 3, "S": 3, "P": 5, "Q": 4}
    (found,) = run(changed, sizes, values=False).violations
    assert (found.code, found.element) == ("I3", (0, 0, 0, 0))
    assert found.message.startswith("element [0, 0, 0, 0] of `Y` is not the sum of its products: 48 of 48 are missing")


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize("config", ["hopper", "cdna3"])
@pytest.mark.parametrize(
    ("name", "family"), [("depthwise", "depthwise"), ("max_pool", "max_pool"), ("max_pool", "average_pool")]
)
def test_windows_violate_nothing(name: str, family: str, config: str) -> None:
    made = kernel(name, family, config)
    stride = 2 if (config == "cdna3") == (name == "depthwise") else 1
    sizes = {"B": 2, "H": 5, "W": 4, "C": 8, "P": 4 // stride + 1, "Q": 3 // stride + 1}
    for schedule in directed(made):
        assert run(made, sizes, schedule=schedule).violations == ()


# -- programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gemm_split", "gemm_added"])
@pytest.mark.parametrize("sizes", [(70, 40, 136), (3, 12, 8)])
def test_split_sums(family: str, sizes: tuple[int, int, int]) -> None:
    """With more splits than steps of k too."""
    (m, n, k), made = sizes, program("split_k", family)
    a, b = small(1, m, k), small(2, n, k)
    for schedule in (LATE, MIXED):
        outcome = run_program(made, {"M": m, "N": n, "K": k}, {"A": a, "B": b}, schedule)
        assert outcome.violations == ()
        found = outcome.arrays["C"]
        assert np.array_equal(found, (wide(a) @ wide(b).T).astype(found.dtype))


def test_splits_that_overlap_count_twice_in_the_launch_after() -> None:
    made = program(
        "split_k", "gemm_split", ("for k in loop(low, high):", "for k in loop(0, high):"),
        ("for _ in loop(low, high):", "for _ in loop(0, high):"), ("low * cfg.bk, minimum", "0, minimum"),
    )  # fmt: skip
    found = run_program(made, {"M": 4, "N": 4, "K": 256}, values=False).violations
    assert [(v.code, v.message) for v in found] == [("I3", "the sum over `k` is not [0, K): k = 0 is counted twice")]


def test_an_output_that_nobody_has_zeroed_is_reported() -> None:
    made = program("split_k", "gemm_added")
    alone = evolve(made, launches=made.launches[1:], workspaces=made.parameters[2:], parameters=made.parameters[:2])
    assert codes(run_program(alone, {"M": 4, "N": 4, "K": 8}, values=False)) == {"I38"}


def test_changed_launches_show() -> None:
    """A launch made twice, or exchanged with another: no program, or a run reports it, or the numbers are right."""
    sizes, a, b = {"M": 3, "N": 12, "K": 40}, small(1, 3, 40), small(2, 12, 40)
    harmless: list[str] = []
    for mutant in mutated_program(program("split_k", "gemm_split")):
        if check_program(mutant.program):
            continue
        outcome = run_program(mutant.program, sizes, {"A": a, "B": b}, LATE)
        if not outcome.violations:
            assert np.array_equal(outcome.arrays["C"], (wide(a) @ wide(b).T).astype(BF16)), mutant.what
            harmless.append(mutant.what)
    # Either launch writes all of its output from inputs that it does not change.
    assert harmless == ["launch 0, `partial`, made twice", "launch 1, `combine`, made twice"]


def test_a_program_takes_arrays() -> None:
    a, b = small(1, 5, 8), small(2, 4, 8)
    family = namespace("split_k")["gemm_split"]
    assert isinstance(family, ProgramTemplate)
    found = argus.interpret(family, a, b, np.zeros((5, 4), BF16))
    assert list(found) == ["C"]
    assert np.array_equal(found["C"], (wide(a) @ wide(b).T).astype(BF16))
    with pytest.raises(ArgusError) as caught:
        argus.interpret(program("split_k", "gemm_split"), a[:, :4], b[:, :4], np.zeros((5, 4), BF16))
    assert caught.value.diagnostic.code == "E402"


# -- attention -------------------------------------------------------------------------------------------------


def attended(q: Array, k: Array, v: Array, *, causal: bool) -> tuple[Array, Array]:
    """O and the logarithm of the row's sum, in float64."""
    heads, (length, keys) = q.shape[1] // k.shape[1], (q.shape[2], k.shape[2])
    wide_k, wide_v = (np.repeat(wide(x), heads, axis=1) for x in (k, v))
    scores = wide(q) @ wide_k.swapaxes(2, 3) / sqrt(128)
    if causal:
        seen = np.tri(length, keys, keys - length, np.bool_)
        scores = np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - top)
    total = powers.sum(-1, keepdims=True)
    return powers / total @ wide_v, (np.log(total) + top)[..., 0]


def heads(sizes: Mapping[str, int]) -> dict[str, Array]:
    def of(seed: int, many: str, length: str) -> Array:
        return normal(seed, sizes["B"], sizes[many], sizes[length], 128, dtype=BF16)

    return {"Q": of(1, "H", "S"), "K": of(2, "G", "T"), "V": of(3, "G", "T")}


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize(
    "sizes",
    [{"B": 1, "H": 2, "G": 1, "S": 70, "T": 300}, {"B": 1, "H": 1, "G": 1, "S": 1, "T": 1}],
    ids=["grouped", "one"],
)
def test_attention_on_hopper(sizes: dict[str, int]) -> None:
    made, arrays = kernel("attention_hopper", "attention", "causal"), heads(sizes)
    wanted, sums = attended(arrays["Q"], arrays["K"], arrays["V"], causal=True)
    for schedule in (directed(made)[0], MIXED):
        outcome = run(made, sizes, arrays, schedule)
        assert outcome.violations == ()
        assert np.abs(wide(outcome.arrays["O"]) - wanted).max() < ROUNDED
        assert np.allclose(outcome.arrays["LSE"], sums, rtol=0, atol=1e-5)


SPOILED = {
    "a key beyond the row's own": (("<= row0 + r + offset)", "<= row0 + r + offset + 1)"), "I25"),
    "keys of another head": (("V[b, h // (H // G)]", "V[b, h // (H // G) * 0]"), "I26"),
    "values of another block": (("(n, 0)), slot.v", "(n // 2, 0)), slot.v"), "I24"),
}


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize("fault", SPOILED)
def test_wrong_attention_is_reported(fault: str) -> None:
    edit, code = SPOILED[fault]
    made = kernel("attention_hopper", "attention", "causal", edit)
    sizes = {"B": 1, "H": 2, "G": 2, "S": 20, "T": 300}
    assert code in codes(run(made, sizes, schedule=directed(made)[0]))


@pytest.mark.share(96, among="listings")
@pytest.mark.parametrize("sizes", [(1, 2, 1, 50, 130), (1, 1, 1, 3, 64)])
def test_attention_on_mi300x(sizes: tuple[int, ...]) -> None:
    made, named = program("attention_cdna3", "attention_cdna3"), dict(zip("BHGST", sizes, strict=True))
    arrays = heads(named)
    wanted, _ = attended(arrays["Q"], arrays["K"], arrays["V"], causal=False)
    for schedule in (LATE, MIXED):
        outcome = run_program(made, named, arrays, schedule)
        assert outcome.violations == ()
        assert np.abs(wide(outcome.arrays["O"]) - wanted).max() < ROUNDED


def test_one_prefetch_distance_for_both_groups_is_reported() -> None:
    made = program("attention_cdna3", "attention_cdna3", ("bring(n + 1 + group)", "bring(n + 1)"))
    found = codes(run_program(made, dict(zip("BHGST", (1, 1, 1, 4, 300), strict=True)), values=False))
    assert found & {"I5", "I30", "I31", "I36"}


# -- grouped products ------------------------------------------------------------------------------------------


def grouped(expert: list[int]) -> tuple[dict[str, int], dict[str, Array], Array]:
    """Sizes, inputs and the product in float64, NaN in rows of no expert."""
    blocks, group = len(expert), 3
    m, n, k = 128 * blocks, 128, 256
    a, w = normal(1, m, k, dtype=E4M3), normal(2, group, n, k, dtype=E4M3)
    sa, sw = 1 + np.abs(normal(3, 2, m)), 1 + np.abs(normal(4, group, 1, 2))
    left = wide(a) * np.repeat(wide(sa).T, 128, axis=1)
    right = wide(w) * np.repeat(np.repeat(wide(sw), 128, axis=1), 128, axis=2)
    wanted = np.full((m, n), np.nan)
    for block, one in enumerate(expert):
        if one >= 0:
            rows = slice(128 * block, 128 * block + 128)
            wanted[rows] = left[rows] @ right[one].T
    sizes = {"M": m, "K": k, "KB": 2, "G": group, "N": n, "NB": 1, "MB": blocks}
    return sizes, {"A": a, "SA": sa, "W": w, "SW": sw, "expert": np.array(expert, np.int32)}, wanted


def test_grouped_products() -> None:
    made = kernel("grouped_gemm", "grouped_gemm", "fp8")
    for schedule, expert in ((directed(made)[0], [2, -1]), (MIXED, [0, 1])):
        sizes, arrays, wanted = grouped(expert)
        outcome = run(made, sizes, arrays, schedule)
        assert outcome.violations == ()
        found = wide(outcome.arrays["C"])
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        assert np.nanmax(np.abs(found - wanted)) < ROUNDED * np.nanmax(np.abs(wanted))


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (("W[x].tile", "W[0].tile"), "I27"),
        (("copy(SA[k].tile", "copy(SA[0].tile"), "I2"),
        (("r.kb, p.k // 128)", "r.kb, p.k // 64)"), "I35"),
    ],
)
def test_wrong_experts_and_scales_are_reported(edit: tuple[str, str], code: str) -> None:
    made = kernel("grouped_gemm", "grouped_gemm", "fp8", edit)
    sizes, arrays, _ = grouped([2])
    assert code in codes(run(made, sizes, arrays, directed(made)[0], values=False))


def test_integers_that_break_a_promise_are_refused() -> None:
    made = kernel("grouped_gemm", "grouped_gemm", "fp8")
    sizes, arrays, _ = grouped([2, 2])
    arrays["expert"][1] = 3
    with pytest.raises(ArgusError) as caught:
        interpret(made, *arrays.values(), np.zeros((sizes["M"], sizes["N"]), BF16))
    assert caught.value.diagnostic.code == "E402"
    assert caught.value.diagnostic.facts == (("expert[1]", "3"),)


def test_integers_that_are_not_given_keep_the_promise() -> None:
    made = kernel("grouped_gemm", "grouped_gemm", "fp8")
    sizes, _, _ = grouped([0, 0])
    for seed in range(2):
        found = run(made, sizes, values=False, seed=seed, schedule=directed(made)[0])
        assert found.violations == ()
