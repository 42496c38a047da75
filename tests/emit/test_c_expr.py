from __future__ import annotations

import ctypes
import random
from pathlib import Path

import numpy as np
import pytest

from argus.core import algebra
from argus.core.algebra import const, coord, sym
from argus.core.diagnostic import ArgusError
from argus.core.index import Cond, Index, Symbol
from argus.core.walk import evaluate
from argus.emit.c_expr import CText, ElementText
from argus.emit.cuda.nvrtc import compile_ptx
from argus.emit.hip.prelude import PRELUDE
from argus.emit.names import Names
from tests.emit import host

THREAD = Symbol("thread", "thread", 0, 255)
SYMBOLS = (THREAD, Symbol("k", "loop", 0), Symbol("m", "fresh"), Symbol("n", "fresh"))
TEXT = CText(Names({s: s.name for s in SYMBOLS}, {}, "kernel"), THREAD, 64)
thread, k, m, n = (sym(s) for s in SYMBOLS)


def test_divisions() -> None:
    assert TEXT.index(algebra.floordiv(m, 8)) == "(m >> 3)"
    assert TEXT.index(algebra.mod(m, 8)) == "(m & 7)"
    assert TEXT.index(algebra.floordiv(k, 12)) == "(k / 12)"
    assert TEXT.index(algebra.mod(k, 12)) == "(k % 12)"
    assert TEXT.index(algebra.floordiv(m, 12)) == "floor_div(m, 12)"
    assert TEXT.index(algebra.mod(m, 12)) == "floor_mod(m, 12)"


def test_the_number_of_a_wave_is_a_scalar() -> None:
    assert TEXT.index(algebra.floordiv(thread, 64)) == "wave"
    assert TEXT.index(algebra.floordiv(thread, 128)) == "(wave >> 1)"
    assert TEXT.index(algebra.mod(algebra.floordiv(thread, 64), 2)) == "(wave & 1)"
    assert TEXT.index(algebra.floordiv(thread, 32)) == "(thread >> 5)"


def test_sums_and_products() -> None:
    assert TEXT.index(algebra.add(algebra.mul(m, 128), algebra.neg(n), 3)) == "128 * m - n + 3"
    assert TEXT.index(algebra.mul(m, n), "(long)") == "(long)m * (long)n"
    assert TEXT.factor(algebra.add(m, 1)) == "(m + 1)"
    assert TEXT.index(algebra.neg(m)) == "-m"


def test_conditions() -> None:
    assert TEXT.cond(algebra.lt(k, n)) == "k < n"
    assert TEXT.cond(algebra.lt(algebra.add(k, 1), n)) == "k + 1 < n"
    assert TEXT.cond(algebra.eq(k, 0)) == "k == 0"
    assert TEXT.cond(algebra.negate(algebra.eq(m, n))) == "m != n"
    assert TEXT.cond(algebra.TRUE) == "true"
    assert TEXT.cond(algebra.FALSE) == "false"
    both = TEXT.cond(algebra.all_of((algebra.le(m, n), algebra.any_of((algebra.eq(m, 1), algebra.eq(m, 2))))))
    assert both in {"m <= n && (m == 1 || m == 2)", "m <= n && (m == 2 || m == 1)"} | {
        "(m == 1 || m == 2) && m <= n",
        "(m == 2 || m == 1) && m <= n",
    }


def test_an_expression_without_c_text_is_an_error() -> None:
    with pytest.raises(ArgusError, match=r"E501: not built yet: .* read"):
        TEXT.index(algebra.read("table", (m,)))
    with pytest.raises(ArgusError, match="E501"):
        TEXT.index(coord(0))


def _random_index(draw: random.Random, depth: int) -> Index:
    if depth == 0:
        return draw.choice((thread, k, m, n, const(draw.randint(-9, 9))))
    left, right = _random_index(draw, depth - 1), _random_index(draw, depth - 1)
    positive = draw.choice((1, 2, 3, 4, 7, 8, 12, 64, 128))
    match draw.randrange(9):
        case 0 | 1:
            return algebra.add(left, right)
        case 2:
            return algebra.mul(left, draw.randint(-5, 5))
        case 3:
            return algebra.floordiv(left, positive)
        case 4:
            return algebra.mod(left, positive)
        case 5:
            return algebra.minimum(left, right) if draw.random() < 0.5 else algebra.maximum(left, right)
        case 6:
            return algebra.pick(_random_cond(draw, left, right), left, right)
        case 7:
            operation = draw.choice((algebra.bit_xor, algebra.bit_or, algebra.bit_and))
            return operation(left, right)
        case _:
            return algebra.sub(left, right)


def _random_cond(draw: random.Random, left: Index, right: Index) -> Cond:
    first, second = algebra.le(left, right), algebra.eq(algebra.mod(left, 4), 1)
    both = draw.choice((algebra.all_of, algebra.any_of))((first, algebra.negate(second)))
    return draw.choice((first, second, both, algebra.negate(both), algebra.lt(right, left)))


I32 = (1 << 32) - 1
TABLE = CText(
    Names({s: s.name for s in SYMBOLS}, {}, "kernel"),
    THREAD,
    64,
    elements=ElementText(str, lambda _, at: f"T[{at[0]}]"),
)


def test_every_part_has_the_stated_width() -> None:
    row = algebra.read("T", (algebra.add(algebra.mul(k, 4096), 7),))
    assert TABLE.index(algebra.add(algebra.mul(row, 4096), algebra.mul(n, 1024)), "(long)") == (
        "1024 * (long)n + 4096 * (long)T[4096 * (long)k + 7]"
    )
    assert TABLE.index(row) == "T[4096 * (long)k + 7]"
    assert TABLE.index(algebra.floordiv(algebra.mul(m, n), 12), "(long)") == "floor_div_long((long)m * (long)n, 12)"
    assert TABLE.index(algebra.minimum(row, 3), "(long)") in {
        "min_long((long)T[4096 * (long)k + 7], 3)",
        "min_long(3, (long)T[4096 * (long)k + 7])",
    }
    assert TEXT.index(algebra.floordiv(thread, 64), "(long)") == "(long)wave"
    assert TEXT.index(algebra.floordiv(m, 12), "(unsigned)") == "(unsigned)floor_div_long((long)m, 12)"


def test_a_minimum_in_32_bits_is_of_ints() -> None:
    """CUDA's `min` and `max` take two numbers of one type, and a number that `int` does not hold is a `long`."""
    rows, most = algebra.minimum(m, 1 << 33), algebra.maximum(algebra.add(algebra.mul(m, 1 << 31), n), k)
    assert TEXT.index(rows) in {"min(m, (int)8589934592)", "min((int)8589934592, m)"}
    assert TEXT.index(rows, "(long)") in {"min_long((long)m, 8589934592)", "min_long(8589934592, (long)m)"}
    assert TEXT.index(algebra.minimum(m, (1 << 31) - 1)) in {"min(m, 2147483647)", "min(2147483647, m)"}
    values = f"out[0] = {TEXT.index(rows)}; out[1] = {TEXT.index(most)};"
    text = f'extern "C" __global__ void both(int* out, int k, int m, int n) {{ {values} }}'
    assert "both" in compile_ptx(text, "both")


@pytest.mark.skipif(not host.available(), reason="runs C text on 64-bit Linux")
def test_wide_text_computes_what_32_bits_do_not_hold(tmp_path: Path) -> None:
    """Also at values whose products exceed 32 bits; in unsigned 32 bits modulo 2^32."""
    draw = random.Random(8)  # noqa: S311 reason: a fixed sample of expressions
    wanted = [algebra.mul(_random_index(draw, draw.randint(1, 3)), draw.choice((1, 4096, 2**20))) for _ in range(150)]
    lines = [f"out[{i}] = {TEXT.factor(node, '(long)')};" for i, node in enumerate(wanted)]
    lines += [
        f"out[{len(wanted) + i}] = (unsigned)({TEXT.index(node, '(unsigned)')});" for i, node in enumerate(wanted)
    ]
    head = 'extern "C" void all(int thread, int k, int m, int n, long* out) { int wave = thread / 64;'
    library = host.compiled(PRELUDE, "\n".join((head, *lines, "}")), tmp_path)
    for _ in range(40):
        values = draw.randrange(256), draw.randrange(1 << 30), *(draw.randint(-(1 << 30), 1 << 30) for _ in "mn")
        out = np.zeros(len(lines), np.int64)
        library.all(*values, out.ctypes.data_as(ctypes.c_void_p))
        expected = [int(evaluate(node, dict(zip(SYMBOLS, values, strict=True)))) for node in wanted]
        assert out.tolist() == [*expected, *(number & I32 for number in expected)]


@pytest.mark.skipif(not host.available(), reason="runs C text on 64-bit Linux")
def test_the_text_computes_what_the_expression_means(tmp_path: Path) -> None:
    draw = random.Random(7)  # noqa: S311 reason: a fixed sample of expressions
    wanted = [_random_index(draw, draw.randint(1, 4)) for _ in range(150)]
    conds = [_random_cond(draw, _random_index(draw, 2), _random_index(draw, 2)) for _ in range(50)]
    lines = [f"out[{i}] = {TEXT.index(node)};" for i, node in enumerate(wanted)]
    lines += [f"out[{len(wanted) + i}] = {TEXT.cond(cond)};" for i, cond in enumerate(conds)]
    head = 'extern "C" void all(int thread, int k, int m, int n, int* out) { int wave = thread / 64;'
    body = "\n".join((head, *lines, "}"))
    library = host.compiled(PRELUDE, body, tmp_path)
    for _ in range(40):
        values = (draw.randrange(256), draw.randrange(1000), draw.randint(-500, 500), draw.randint(-500, 500))
        env = dict(zip(SYMBOLS, values, strict=True))
        out = np.zeros(len(lines), np.int32)
        library.all(*values, out.ctypes.data_as(ctypes.c_void_p))
        expected = [int(evaluate(node, env)) for node in (*wanted, *conds)]
        assert out.tolist() == expected
