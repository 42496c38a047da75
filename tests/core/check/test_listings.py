"""The kernels of tests/corpus/traced are traced, well formed and printed; those whose header says so are proved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from argus.core.check import check
from argus.core.dtype import bf16
from argus.core.ir import Copy, Fold, Kernel, Map, Mma, Program, Stmt, walk
from argus.core.ir.pretty import pretty
from argus.core.query import Budget
from argus.core.verdict import Proved, Unknown
from argus.emit.hip.text import hip_text
from argus.verifier.api import interpret
from argus.verifier.kernel import verify
from argus.verifier.loader import Exported, load
from argus.verifier.program import verify_program
from property_tests.programs import CORPUS

Array = npt.NDArray[Any]
FILES = sorted((CORPUS / "traced").glob("*.py"))
LISTINGS = tuple(exported for path in FILES for exported in load(str(path)))
every_listing = pytest.mark.parametrize("listing", LISTINGS, ids=lambda each: each.name)


def listed(verdict: str) -> tuple[Exported, ...]:
    """The kernels of files with this verdict in their first line."""
    paths = [path for path in FILES if path.read_text(encoding="utf-8").startswith(f"# verdict: {verdict}\n")]
    return tuple(exported for path in paths for exported in load(str(path)))


def kernel_of(name: str) -> Kernel:
    return next(each for each in LISTINGS if each.name == name).trace()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_whether_it_is_proved(path: Path) -> None:
    first, docstring, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first in ("# verdict: traced", "# verdict: proved")
    assert docstring.startswith('"""')


@pytest.mark.share(4)
@every_listing
def test_a_listing_is_well_formed_and_prints(listing: Exported) -> None:
    kernel = listing.trace()
    assert check(kernel) == ()
    text = pretty(kernel)
    assert text.startswith(f"kernel {kernel.name} for {kernel.target}: {kernel.threads} threads")
    lines = [line.strip() for line in text.splitlines()]
    assert sum(line.startswith("copy ") for line in lines) == counted(kernel)["Copy"]
    assert sum(line.startswith("mma ") for line in lines) == counted(kernel)["Mma"]


@pytest.mark.share(88, among="listings proved")
@pytest.mark.parametrize(
    "listing", [each for each in listed("proved") if each.program is None], ids=lambda each: each.name
)
def test_a_listing_is_proved(listing: Exported) -> None:
    report = verify(listing.trace(), solver="z3")
    assert isinstance(report.verdict, Proved), report.diagnostics


PROGRAMS = tuple(dict.fromkeys(each.program for each in listed("proved") if each.program is not None))


@pytest.mark.share(88, among="listings proved")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_a_program_of_a_listing_is_proved(program: Program) -> None:
    report = verify_program(program, solver="z3")
    assert isinstance(report.verdict, Proved), [each.diagnostics for each in report.launches]
    assert all(isinstance(each.verdict, Proved) for each in report.launches)


@pytest.mark.share(88, among="listings proved")
@pytest.mark.parametrize(
    "listing", [each for each in listed("traced") if each.program is None], ids=lambda each: each.name
)
def test_a_listing_without_claims(listing: Exported) -> None:
    report = verify(listing.trace(), solver="z3", budget=evolve(Budget.about(0.3), runs=0))
    assert report.uncovered or (isinstance(report.verdict, Unknown) and report.verdict.reason), report.diagnostics


def counted(kernel: Kernel) -> Counter[str]:
    return Counter(type(stmt).__name__ for stmt in walk(kernel.body))


def folds(kernel: Kernel) -> list[tuple[str, str, str]]:
    return [(stmt.keep, stmt.op, stmt.within) for stmt in walk(kernel.body) if isinstance(stmt, Fold)]


def of_kind(kernel: Kernel, kind: type[Stmt]) -> list[Stmt]:
    return [stmt for stmt in walk(kernel.body) if isinstance(stmt, kind)]


SMALL = ("softmax_hopper", "layer_norm_hopper", "scan_hopper", "conv2d_same", "depthwise_hopper", "max_pool_hopper")


@pytest.mark.parametrize("name", SMALL)
def test_text(name: str, golden: Callable[[str], None]) -> None:
    golden(pretty(kernel_of(name)))


SOFTMAX_FOLDS = [
    ("total", "max", "thread"),
    ("total", "add", "thread"),
    ("total", "max", "warp"),
    ("total", "max", "thread"),
    ("total", "add", "warp"),
    ("total", "add", "thread"),
]


@pytest.mark.parametrize("name", ["softmax_hopper", "softmax_cdna3", "softmax_any_length"])
def test_softmax_reduces_within_threads_then_lanes_then_warps(name: str) -> None:
    kernel = kernel_of(name)
    assert folds(kernel) == SOFTMAX_FOLDS
    text = pretty(kernel)
    assert text.count("edge -inf") == 2
    assert text.count(f"where thread % {kernel.target.unit} == 0") == 2
    assert "guard = where(now == -inf, 0, now)" in text


def test_a_row_of_any_length_is_read_element_by_element() -> None:
    assert "ld_global_b32" in pretty(kernel_of("softmax_any_length"))
    assert "ld_global_b128" in pretty(kernel_of("softmax_hopper"))


@pytest.mark.parametrize("name", ["scan_hopper", "scan_cdna3"])
def test_a_scan_is_scans_within_threads_and_warps_and_a_lane_shift(name: str) -> None:
    kernel = kernel_of(name)
    unit = kernel.target.unit
    assert folds(kernel) == [
        ("prefix", "add", "thread"),
        ("total", "last", "thread"),
        ("prefix", "add", "warp"),
        ("total", "last", "warp"),
        ("total", "add", "thread"),
        ("total", "add", "thread"),
    ]
    text = pretty(kernel)
    assert f"box where thread % {unit} == {unit - 1}" in text
    assert f"lane[i0 - 1 : 256] where i0 % {unit} >= 1" in text
    assert f"where(i0 < thread // {unit}, heads, 0)" in text


def test_a_convolution_is_a_product_of_a_gathered_view() -> None:
    for name, before in (("conv2d_same", 1), ("conv2d_strided", 3), ("conv2d_dilated", 2)):
        kernel = kernel_of(name)
        assert of_kind(kernel, Mma)
        text = pretty(kernel)
        assert "for every each < R, each_2 < S, each_3 < C" in text
        assert f"- {before}, " in text
        padded = [s for s in of_kind(kernel, Copy) if isinstance(s, Copy) and s.source.buffer.name == "X"]
        assert {copy.edge for copy in padded} == {0.0}


def test_a_window_is_unrolled() -> None:
    assert len(of_kind(kernel_of("depthwise_hopper"), Copy)) == 2 * 9 + 1
    assert len(of_kind(kernel_of("max_pool_hopper"), Copy)) == 9 + 1
    assert len(of_kind(kernel_of("max_pool_hopper"), Map)) == 1 + 9 * 3 + 1


def test_a_weight_of_each_channel_is_broadcast_over_pixels_in_the_emitted_text() -> None:
    assert re.search(r"\[9\] \* value_\w+\[1\]\)", str(hip_text(kernel_of("depthwise_cdna3"))))


def windows(x: Array, extents: tuple[int, int], stride: int, fill: float) -> dict[tuple[int, int], Array]:
    """Per place of a 3 x 3 window with one element of padding, the input under it, in f32."""
    padded = np.full((x.shape[0], x.shape[1] + 2, x.shape[2] + 2, x.shape[3]), fill, np.float32)
    padded[:, 1:-1, 1:-1] = x
    rows, columns = extents
    return {
        (r, s): padded[:, r : r + stride * (rows - 1) + 1 : stride, s : s + stride * (columns - 1) + 1 : stride]
        for r in range(3)
        for s in range(3)
    }


def pooled(name: str, x: Array, stride: int, filters: Array | None) -> Array:
    rows, columns = ((extent - 1) // stride + 1 for extent in x.shape[1:3])
    y = np.zeros((x.shape[0], rows, columns, x.shape[3]), bf16.numpy)
    arrays = (x, y) if filters is None else (x, filters, y)
    return interpret(kernel_of(name), *arrays)["Y"].astype(np.float32)


@pytest.mark.share(4, among="listings in the interpreter")
@pytest.mark.parametrize(("target", "stride"), [("hopper", 2), ("cdna3", 1)])
def test_pooling_in_the_interpreter(target: str, stride: int) -> None:
    x = np.random.default_rng(1).standard_normal((2, 9, 7, 72)).astype(bf16.numpy)
    extents = ((9 - 1) // stride + 1, (7 - 1) // stride + 1)
    under = windows(x, extents, stride, -np.inf)
    assert np.array_equal(pooled(f"max_pool_{target}", x, stride, None), np.maximum.reduce(list(under.values())))
    sums = sum(windows(x, extents, stride, 0).values())
    mean = sums / sum(windows(np.ones_like(x), extents, stride, 0).values())
    assert np.allclose(pooled(f"average_pool_{target}", x, stride, None), mean, rtol=2**-8, atol=2**-8)


@pytest.mark.share(4, among="listings in the interpreter")
@pytest.mark.parametrize(("target", "stride"), [("hopper", 1), ("cdna3", 2)])
def test_a_depthwise_convolution_in_the_interpreter(target: str, stride: int) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((2, 9, 7, 72)).astype(bf16.numpy)
    filters = random.standard_normal((3, 3, 72)).astype(bf16.numpy)
    under = windows(x, ((9 - 1) // stride + 1, (7 - 1) // stride + 1), stride, 0)
    wanted = sum(part * filters[place].astype(np.float32) for place, part in under.items())
    assert np.allclose(pooled(f"depthwise_{target}", x, stride, filters), wanted, rtol=2**-8, atol=2**-6)
