"""The emitted text run on the CPU: its results, and that it writes nothing else."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from argus.core import algebra
from argus.core.algebra import const, coord, sym
from argus.core.atom import Atom
from argus.core.atoms import gfx942 as isa
from argus.core.dtype import bf16, f32
from argus.core.ir import (
    Alloc,
    Buffer,
    Cast,
    Compare,
    Copy,
    Get,
    Holds,
    Kernel,
    Lit,
    Map,
    Num,
    Op,
    Stmt,
    Sync,
    Where,
    whole,
)
from argus.core.layout import Swizzle
from argus.emit.hip.text import hip_text
from argus.emit.names import assign_names
from argus.kernels.gemm import gemm as family
from tests.emit import host
from tests.emit.handmade import M, gemm, kernel, registers, shared, stage, tensor, tile, vector_tv

pytestmark = pytest.mark.skipif(not host.available(), reason="runs emitted text on 64-bit Linux")
GUARD = 64


def _normal(shape: tuple[int, int], seed: int) -> host.Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)


def _guarded(shape: tuple[int, int]) -> tuple[host.Array, host.Array]:
    """A tensor of sevens between sevens, and the tensor alone."""
    count = shape[0] * shape[1]
    flat = np.full(count + 2 * GUARD, 7, ml_dtypes.bfloat16)
    return flat, flat[GUARD : GUARD + count].reshape(shape)


def _untouched(flat: host.Array) -> bool:
    return bool((flat[:GUARD] == 7).all()) and bool((flat[-GUARD:] == 7).all())


def _product(made: Kernel, sizes: dict[str, int], work: Path) -> tuple[host.Array, host.Array]:
    a, b = _normal((sizes["M"], sizes["K"]), 1), _normal((sizes["N"], sizes["K"]), 2)
    flat, c = _guarded((sizes["M"], sizes["N"]))
    grid = -(-sizes["M"] // 128), -(-sizes["N"] // 128)
    host.run(hip_text(made), assign_names(made).kernel, 256, grid, [a, b, c], [sizes[s.name] for s in made.sizes], work)
    assert _untouched(flat), "stored outside of C"
    return c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.share(4)
@pytest.mark.parametrize("sizes", [{"M": 150, "N": 200, "K": 72}, {"M": 1, "N": 3, "K": 8}], ids=str)
@pytest.mark.parametrize("atom", [isa.mfma_f32_32x32x8_bf16, isa.mfma_f32_16x16x16_bf16], ids=str)
def test_a_gemm_by_hand(atom: Atom, sizes: dict[str, int], tmp_path: Path) -> None:
    found, expected = _product(gemm(atom), sizes, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=2**-8, atol=2**-12)


def test_the_shipped_gemm(tmp_path: Path) -> None:
    made = family.trace()
    found, expected = _product(made, {"M": 130, "N": 129, "K": 104}, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=2**-8, atol=2**-12)


def copying(loads: tuple[Atom, ...], stores: tuple[Atom, ...], edge: float) -> Kernel:
    """Y = X by each pair of instructions in turn, Y and X having M rows, one tile of 64 rows."""
    parameters: list[Buffer] = []
    body: list[Stmt] = []
    for load, store in zip(loads, stores, strict=True):
        size = load.vector_bits // 16
        tv = vector_tv(256, size, 32 if size > 1 else 4)
        shape = tv.tile[0], tv.tile[1]
        x, y = (tensor(f"{name}{load.vector_bits}", sym(M), const(shape[1])) for name in "XY")
        held = registers(f"held{load.vector_bits}", tv)
        parameters += [x, y]
        body += [
            Alloc(held),
            Copy(load, tile(x, shape, (const(0), const(0))), whole(held), tv, edge),
            Map(whole(held), Op("add", (Get(whole(held), (coord(0), coord(1))), Lit(1.0)))),
            Copy(store, whole(held), tile(y, shape, (const(0), const(0))), tv, edge),
        ]
    return kernel("copying_", tuple(parameters), tuple(body))


@pytest.mark.parametrize(
    ("loads", "stores"),
    [(isa.global_load, isa.global_store), (isa.buffer_load, isa.buffer_store)],
    ids=["global", "buffer"],
)
def test_copies_of_every_width_stop_at_the_edge(
    loads: tuple[Atom, ...], stores: tuple[Atom, ...], tmp_path: Path
) -> None:
    made = copying(loads, stores, 0.0)
    rows = 7
    arrays: list[host.Array] = []
    guards: list[host.Array] = []
    for x in made.parameters[::2]:
        columns = int(np.asarray(algebra.index(x.shape[1]).range)[0])
        flat, y = _guarded((rows, columns))
        arrays += [_normal((rows, columns), 3), y]
        guards.append(flat)
    host.run(hip_text(made), "copying_", 256, (1, 1), arrays, [rows, 0, 0], tmp_path)
    for x, y in zip(arrays[::2], arrays[1::2], strict=True):
        np.testing.assert_array_equal(y, x + ml_dtypes.bfloat16(1.0))
    assert all(_untouched(flat) for flat in guards)


def test_shared_memory_and_a_swizzle(tmp_path: Path) -> None:
    tv = vector_tv(256, 8, 32)
    turned = vector_tv(256, 4, 16)
    x, y = tensor("X", sym(M), const(32)), tensor("Y", sym(M), const(32))
    lds = shared("lds", (3, 64, 32), Swizzle(2, 3, 2))
    held, other = registers("held", tv), registers("other", turned)
    half = (algebra.add(coord(0), 0), algebra.add(coord(1), 16))
    view = stage(lds, const(2))
    right = type(view)(lds, (const(64), const(16)), (const(2), *half))
    target = type(view)(y, (const(64), const(16)), half)
    body = (
        Alloc(lds),
        Alloc(held),
        Copy(isa.buffer_load[3], tile(x, (64, 32), (const(0), const(0))), whole(held), tv, 0.0),
        Copy(isa.ds_write_b128, whole(held), view, tv),
        Sync(),
        Alloc(other),
        Copy(isa.ds_read_b64, right, whole(other), turned),
        Copy(isa.global_store[2], whole(other), target, turned, 0.0),
    )
    source, result = _normal((50, 32), 5), np.full((50, 32), 7, ml_dtypes.bfloat16)
    host.run(hip_text(kernel("turn", (x, y), body)), "turn_", 256, (1, 1), [source, result], [50, 0, 0], tmp_path)
    np.testing.assert_array_equal(result[:, 16:], source[:, 16:])
    assert (result[:, :16] == 7).all()


def test_elements_by_coordinate_and_comparison(tmp_path: Path) -> None:
    tv = vector_tv(256, 4, 16)
    x, y = tensor("X", const(64), const(16), f32), tensor("Y", const(64), const(16))
    held, out = registers("held", tv, f32), registers("out", tv)
    got = Get(whole(held), (coord(0), coord(1)))
    masked = Where(Holds(algebra.lt(coord(1), coord(0))), got, Op("neg", (Num(algebra.mul(coord(0), 2)),)))
    clipped = Where(Compare("<", got, Lit(0.0)), Op("mul", (got, Lit(0.5))), masked)
    body = (
        Alloc(held),
        Copy(isa.global_load[3], tile(x, (64, 16), (const(0), const(0))), whole(held), tv),
        Alloc(out),
        Map(whole(out), Cast(bf16, clipped)),
        Copy(isa.global_store[2], whole(out), tile(y, (64, 16), (const(0), const(0))), tv),
    )
    source = np.random.default_rng(9).standard_normal((64, 16)).astype(np.float32)
    result = np.zeros((64, 16), ml_dtypes.bfloat16)
    host.run(hip_text(kernel("mask", (x, y), body)), "mask_", 256, (1, 1), [source, result], [0, 0, 0], tmp_path)
    rows, columns = np.indices((64, 16))
    expected = np.where(source < 0, source * 0.5, np.where(columns < rows, source, -2.0 * rows))
    np.testing.assert_array_equal(result, expected.astype(np.float32).astype(ml_dtypes.bfloat16))
