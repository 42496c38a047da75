"""Reductions and scans: plans over layouts of many kinds, and their text executed beside the interpreter's plan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from argus.core.algebra import const
from argus.core.check.folds import fold_error
from argus.core.dtype import DType, bf16, f32, i32
from argus.core.elementwise import ELEMENT_OPS
from argus.core.index import Symbol
from argus.core.ir import Buffer, Fold, whole
from argus.core.layout import TV, Layout
from argus.emit import fold_text
from argus.emit.c_expr import CText
from argus.emit.cuda.lanes import LANES as CUDA_LANES
from argus.emit.fold_text import fold_lines
from argus.emit.folds import Ordered, Reduction, Scan, fold_plan
from argus.emit.hip.lanes import LANES
from argus.emit.hip.prelude import PRELUDE
from argus.emit.names import Names
from argus.emit.scope import Scope, c_type, layout_of
from argus.interp.values.reductions import plan as interpreted
from tests.emit import host

UNIT = 64
Array = npt.NDArray[np.float64]
HALVES = """\
// Warps of 32 lanes as the halves of a wave.
using u32 = unsigned;
#define __device__ __attribute__((device))
#define __forceinline__ inline
#define fmaxf __builtin_fmaxf
#define fminf __builtin_fminf
#define __shfl_xor_sync(lanes, word, mask) from_lane(word, lane_now ^ (mask))
#define __shfl_sync(lanes, word, lane) from_lane(word, (lane_now & 32) | ((lane) & 31))
"""


def layout(tile: tuple[int, int], threads: Sequence[int | None], values: Sequence[int]) -> TV:
    """A layout of bits: each number is the stride of one bit of the thread or value index, None for replication."""
    over = Layout(tuple(2 for _ in threads), tuple(each or 0 for each in threads))
    held = Layout(tuple(2 for _ in values), tuple(values)) if values else Layout(1, 0)
    return TV(over, held, tile)


def registers(name: str, tv: TV, dtype: DType) -> Buffer:
    return Buffer(name, "register", dtype, tuple(const(extent) for extent in tv.tile), tv)


def fold(
    unit: int, tv: TV, axis: int, op: str = "add", keep: str = "total", within: str = "warp", dtype: DType = f32
) -> Fold:
    held = tv if keep == "prefix" else tv.partial(axis, 1 if within == "thread" else unit)
    x, y = registers("x", tv, dtype), registers("y", held, dtype)
    made = Fold(whole(y), whole(x), axis, op, keep, within)  # pyright: ignore[reportArgumentType]
    assert fold_error(made, unit) == ""
    return made


# Rows of 16 x 64: lanes over the columns, over the rows, over both, replicated, strided; two waves.
ACROSS = layout((16, 64), (16, 32, 64, 128, 256, 512, 8), (1, 2, 4))
DOWN = layout((16, 64), (1, 2, 4, 8, 16, 32, 512), (64, 128, 256))
FRAGMENT = layout((16, 64), (1, 2, 4, 8, 256, 512, None), (16, 32, 64, 128))
REPEATED = layout((16, 64), (None, 16, 32, None, 64, 1, 8), (2, 4, 128, 256, 512))
STRIPES = layout((1, 256), (4, 8, 16, 32, 64, 128), (1, 2))
BLOCKS = layout((1, 512), (2, 4, 8, 16, 32, 64), (1, 128, 256))
RUN = layout((1, 256), (4, 8, 16, 32, 64, 128), (1, 2))
ONE_EACH = layout((1, 64), (1, 2, 4, 8, 16, 32), ())
MIXED = layout((1, 256), (2, 1, 32, 64, 4, 8), (16, 128))
ODD = TV(Layout((4, 16), (3, 12)), Layout(3, 1), (192, 1))


def folds_of(unit: int) -> dict[str, Fold]:
    """Folds by warps of 64 or 32 lanes."""
    made = partial(fold, unit)

    return {
        "reduce across lanes": made(ACROSS, 1),
        "reduce down": made(DOWN, 0),
        "reduce both": made(DOWN, 1),
        "maximum of a fragment": made(FRAGMENT, 1, "max"),
        "fragment by thread": made(FRAGMENT, 1, "min", within="thread"),
        "product of a fragment": made(FRAGMENT, 0, "mul"),
        "replicated": made(REPEATED, 1),
        "integers": made(FRAGMENT, 1, dtype=i32),
        "16 bits": made(FRAGMENT, 1, dtype=bf16),
        "scan by thread": made(FRAGMENT, 1, keep="prefix", within="thread"),
        "scan of runs": made(RUN, 1, keep="prefix"),
        "scan of stripes": made(STRIPES, 1, keep="prefix"),
        "scan of blocks": made(BLOCKS, 1, "max", keep="prefix"),
        "scan of lanes": made(ONE_EACH, 1, keep="prefix"),
        "scan of a fragment": made(FRAGMENT, 1, keep="prefix"),
        "scan out of order": made(MIXED, 1, keep="prefix"),
        "reduce out of order": made(MIXED, 1),
        "last of a thread": made(FRAGMENT, 1, "last", within="thread"),
        "last of a warp": made(FRAGMENT, 1, "last"),
        "last out of order": made(MIXED, 1, "last"),
        "in threes": made(ODD, 0),
        "scan in threes": made(ODD, 0, keep="prefix"),
    }


UNITS = {"gfx942": 64, "sm_90a": 32}
FOLDS = folds_of(UNIT)
every_target = pytest.mark.parametrize("target", UNITS)


def test_the_plans_are_of_every_kind() -> None:
    kinds = {name: type(fold_plan(stmt, UNIT)) for name, stmt in FOLDS.items()}
    assert {kinds["scan out of order"], kinds["last of a warp"]} == {Ordered}
    assert {kinds["scan of blocks"], kinds["scan of lanes"], kinds["scan by thread"]} == {Scan}
    assert {kinds["reduce out of order"], kinds["replicated"], kinds["last of a thread"]} == {Reduction}


def expected(stmt: Fold, values: Array, unit: int = UNIT) -> Array:
    """The results in ascending order along the axis, by the interpreter's plan; shape (threads, registers)."""
    cells, flat = interpreted(stmt, unit).cells, values.reshape(-1)
    result: list[float] = []
    for own in cells:
        taken = [flat[cell] for cell in own if cell >= 0]
        total = taken[0] if stmt.op != "last" else taken[-1]
        for value in taken[1:] if stmt.op != "last" else []:
            total = ELEMENT_OPS[stmt.op].meaning(total, value)
        result.append(float(total))
    return np.array(result).reshape(values.shape[0], -1)


def text_of(stmt: Fold, number: int, target: str) -> str:
    """A device function: `x` and `y` hold each thread's registers of the source and of the target."""
    thread = Symbol("thread", "thread", 0, layout_of(stmt.source.buffer).threads.size() - 1)
    names = Names({thread: "thread"}, {stmt.source.buffer: "x", stmt.target.buffer: "y"}, "made")
    scope = Scope(CText(names, thread, UNITS[target]), thread, 128, {}, target)
    lines = "\n".join(fold_lines(stmt, scope, UNITS[target]))
    kind = c_type(stmt.source.buffer.dtype)
    held, made = (layout_of(view.buffer).values.size() for view in (stmt.source, stmt.target))
    return f"""static void fold{number}(int thread, const f32* X, f32* Y) {{
    {kind} x[{held}], y[{made}];
    for (int at = 0; at < {held}; ++at) x[at] = ({kind})X[thread * {held} + at];
    {lines}
    for (int at = 0; at < {made}; ++at) Y[thread * {made} + at] = (f32)y[at];
}}
"""


def executed(stmts: Sequence[Fold], inputs: Sequence[Array], work: Path, target: str = "gfx942") -> list[Array]:
    """Run each fold by the wave that its layout has, or two."""
    threads = max(layout_of(stmt.source.buffer).threads.size() for stmt in stmts)
    calls: list[str] = []
    given: list[Array] = []
    for number, (stmt, values) in enumerate(zip(stmts, inputs, strict=True)):
        count = layout_of(stmt.source.buffer).threads.size()
        place = sum(len(each) for each in given)
        calls.append(f"if (thread < {count}) fold{number}(thread, X + {place}, Y + {place});")
        assert layout_of(stmt.target.buffer).values.size() <= values.shape[1]
        given.append(values.reshape(-1))
    x = np.concatenate(given).astype(np.float32)
    y = np.zeros_like(x)
    functions = "".join(text_of(stmt, number, target) for number, stmt in enumerate(stmts))
    body = "\n    ".join(["const int thread = __builtin_amdgcn_workitem_id_x();", *calls])
    lanes = LANES if target == "gfx942" else HALVES + CUDA_LANES.replace("memcpy", "__builtin_memcpy")
    text = f'{PRELUDE}{lanes}{functions}extern "C" __global__ \nvoid made(const f32* X, f32* Y) {{\n    {body}\n}}\n'
    host.run(text, "made", threads, (1, 1), (x, y), (), work)
    found: list[Array] = []
    at = 0
    for stmt, values in zip(stmts, inputs, strict=True):
        made = values.shape[0] * layout_of(stmt.target.buffer).values.size()
        found.append(y[at : at + made].reshape(values.shape[0], -1).astype(np.float64))
        at += values.size
    return found


def small_integers(stmt: Fold, seed: int) -> Array:
    """One number for each element of the tile, so that sums are exact; small factors for products."""
    held = layout_of(stmt.source.buffer)
    rng = np.random.default_rng(seed)
    high = 3 if stmt.op == "mul" else 2 if stmt.source.buffer.dtype is bf16 else 50
    tile = rng.integers(1 if stmt.op == "mul" else 0, high, int(np.prod(held.tile))).astype(np.float64)
    return tile[held.elements()]


@pytest.mark.share(6)
@pytest.mark.skipif(not host.available(), reason="no contexts of glibc here")
@every_target
def test_the_text_computes_what_the_interpreter_does(target: str, tmp_path: Path) -> None:
    found_by = folds_of(UNITS[target])
    stmts = list(found_by.values())
    inputs = [small_integers(stmt, seed) for seed, stmt in enumerate(stmts)]
    found = executed(stmts, inputs, tmp_path, target)
    for name, stmt, values, result in zip(found_by, stmts, inputs, found, strict=True):
        np.testing.assert_array_equal(result, expected(stmt, values, UNITS[target]), name)


@pytest.mark.skipif(not host.available(), reason="no contexts of glibc here")
def test_a_plan_without_one_exchange_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutation: lanes 8 apart do not exchange."""
    stmt = FOLDS["reduce across lanes"]
    made = fold_plan(stmt, UNIT)
    assert isinstance(made, Reduction)
    fewer = Reduction(made.rows, tuple(mask for mask in made.masks if mask != 8), made.results)

    def changed(_stmt: Fold, _unit: int) -> Reduction:
        return fewer

    monkeypatch.setattr(fold_text, "fold_plan", changed)
    values = small_integers(stmt, 1)
    (found,) = executed([stmt], [values], tmp_path)
    assert (found != expected(stmt, values)).any()
