"""GEMM of f32 matrices as products of bf16 parts: launches split the operands, others multiply the parts.

C = A @ B but for the products of parts that do not count, which the claim names. Rows have any length: those of the
parts are multiples of 16 bytes, and end in zeros. A kernel's name gives the layouts, as in `argus.kernels.layouts`.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable type, by which one text serves all layouts.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Callable
from functools import reduce
from operator import mul
from typing import Any, TypeVar

from attrs import evolve, frozen

from argus.kernels.config_names import config_of
from argus.kernels.schedules.compensated import add_compensated
from argus.kernels.schedules.epilogues import Tail, apply
from argus.kernels.schedules.parts import Parts, parts_of, sum_products_of_parts
from argus.kernels.schedules.parts_claims import rounded_product
from argus.language import (
    Int,
    ProgramTemplate,
    Tensor,
    Value,
    assert_equals,
    assume,
    bf16,
    block_id,
    ceil_div,
    copy,
    elements,
    f32,
    global_store,
    kernel,
    ld_global_b32,
    loop,
    program,
    registers,
    sm_90a,
    spread,
    total,
    workspace,
    zeros,
)

MadeT = TypeVar("MadeT")
_CHUNK = 8
"""Elements of two bytes in 16 bytes."""
_LARGE = Parts(bm=256, stages=3)
CONFIGS: dict[str, Parts] = {
    f"{name}{suffix}": evolve(each, wide=wide)
    for wide, suffix in ((True, ""), (False, "_any"))
    for name, each in {
        "tiles_128": Parts(),
        "compensated": Parts(compensated=True),
        "tiles_128_long": Parts(bk=64, stages=2),
        "columns_192": Parts(bn=192, stages=3),
        "rows_256": _LARGE,
        "rows_256_pairs": evolve(_LARGE, cluster=(1, 2)),
        "chunks_1024": Parts(chunk=1024),
        "chunks_16384": Parts(chunk=16384),
        "high": evolve(_LARGE, products=3, stages=4),
        "high_chunks_2048": Parts(products=3, stages=6, chunk=2048),
        "medium": Parts(products=1, bm=256, bk=64, stages=4),
        "medium_chunks_4096": Parts(products=1, bk=64, stages=6, chunk=4096),
    }.items()
}
"""`any`: rows of any length."""


@frozen
class Splitting:
    """The first launches: each block splits a tile of an operand. wide: its rows are multiples of 16 bytes."""

    parts: int
    wide: bool = True
    tile: tuple[int, int] = (16, 256)
    target = sm_90a
    threads = 256


@frozen
class Adding:
    """The last launch, with chunks of K: each block adds those of a tile. wide: rows are multiples of 16 bytes."""

    wide: bool = True
    tile: tuple[int, int] = (4, 256)
    target = sm_90a
    threads = 256


def split(x: Tensor, made: Tensor, cfg: Splitting) -> None:
    """made[i] = the i-th part of x, a matrix or a batch of matrices, and 0 beyond x."""
    *batch, rows, columns = made.shape[1:]
    by = spread(cfg.tile, threads=cfg.threads, vector=8 if cfg.wide else 2)
    assume(columns % _CHUNK == 0)
    if cfg.wide:
        assume(x.shape[-1] % 4 == 0)
    if batch:
        for each in (x, made):
            first, *others = each.shape
            assume(reduce(mul, others, first) < 1 << 60)  # so that addresses fit 64 bits
    i, j, *z = block_id((ceil_div(rows, cfg.tile[0]), ceil_div(columns, cfg.tile[1]), *batch))
    held = registers(f32, by)
    of = x[tuple(z)] if z else x
    copy(of.tile(cfg.tile, (i, j)), held, via=None if cfg.wide else ld_global_b32, edge=0)
    for number, each in enumerate(parts_of(held, cfg.parts)):
        copy(each.to(bf16), made[(number, *z)].tile(cfg.tile, (i, j)), edge=0)


@kernel
def split_matrix(X: Tensor["R W", f32], P: Tensor["S U V", bf16], *, cfg: Splitting) -> None:
    split(X, P, cfg)


@kernel
def split_batch(X: Tensor["Z R W", f32], P: Tensor["S Z U V", bf16], *, cfg: Splitting) -> None:
    split(X, P, cfg)


@kernel
def add_chunks(part: Tensor["S M N", f32], C: Tensor["M N", f32], *, cfg: Adding) -> None:
    sum_chunks(part, C, cfg)


def sum_chunks(part: Tensor, C: Tensor, cfg: Adding, tail: Tail | None = None) -> None:
    """C = the sum of part[s] over all s; what an addition loses to rounding, the next one makes good [Kahan 1965].

    tail: what becomes of the sums before they are stored.
    """
    M, N = C.shape
    by = spread(cfg.tile, threads=cfg.threads, vector=4)
    if cfg.wide:
        assume(N % 4 == 0)
    at = block_id((ceil_div(M, cfg.tile[0]), ceil_div(N, cfg.tile[1])))
    sums, lost = zeros(f32, by), zeros(f32, by)
    for s in loop(part.shape[0]):
        one = registers(f32, by)
        copy(part[s].tile(cfg.tile, at), one, via=None if cfg.wide else ld_global_b32, edge=0)
        add_compensated(sums, lost, one)
    stores = tuple(each for each in global_store if each.vector_bits == f32.bits)
    found = sums if tail is None else apply(tail, sums, (at[0], at[1]))
    copy(found.to(C.dtype), C.tile(cfg.tile, at), via=None if cfg.wide else stores, edge=0)


def whole_chunks(length: Int, of: int = _CHUNK) -> Int:
    """The least length of rows of parts that is not below this one, and is a multiple of so many elements."""
    return of * ceil_div(length, of)


def claim_product(A: Tensor, B: Tensor, C: Tensor, products: int) -> None:
    """C[z, m, n] is the sum over k of what counts of A[z, m, k] B[z, n, k], or A[m, k] B[z, n, k]; or without z."""
    left, right, in_a = elements(A), elements(B), len(A.shape) - 2

    def element(m: Int, n: Int, *z: Int) -> Value:
        return total(lambda k: rounded_product(left(*z[:in_a], m, k), right(*z, n, k), products), over=A.shape[-1])

    def of_matrices(m: Int, n: Int) -> Value:
        return element(m, n)

    assert_equals(C, of_matrices if len(C.shape) == len(("m", "n")) else lambda z, m, n: element(m, n, z))


def matrix_types(
    *, a_transposed: bool, b_transposed: bool, batched: bool = False, shared: bool = False
) -> tuple[Any, Any, Any]:
    """The types of A, B and C, of f32, for the layouts of `argus.kernels.layouts`, and of `argus.kernels.batched`."""
    z, z_of_a = "Z " if batched else "", "Z " if batched and not shared else ""
    of_a = Tensor[z_of_a + ("K M" if a_transposed else "M K"), f32]
    return of_a, Tensor[z + ("K N" if b_transposed else "N K"), f32], Tensor[f"{z}M N", f32]


def f32_products(
    *, a_transposed: bool, b_transposed: bool, batched: bool = False, shared: bool = False
) -> ProgramTemplate:
    """C = op(A) op(B) of f32, for the layouts of `argus.kernels.layouts`, and of `argus.kernels.batched`."""
    z, z_of_a = "Z " if batched else "", "Z " if batched and not shared else ""
    of_a, of_b, of_c = matrix_types(
        a_transposed=a_transposed, b_transposed=b_transposed, batched=batched, shared=shared
    )
    of_p = Tensor[f"S {z_of_a}" + ("L U" if a_transposed else "U L"), bf16]
    of_q = Tensor[f"S {z}" + ("L V" if b_transposed else "V L"), bf16]
    of_chunks = Tensor["D M N", f32]

    def as_rows(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """The operands as (M, K) and (N, K)."""
        return a.mT if a_transposed else a, b.mT if b_transposed else b

    @kernel
    def multiply_parts(P: of_p, Q: of_q, C: of_c, *, cfg: Parts) -> None:
        p, q = zip(*(as_rows(P[i], Q[i]) for i in range(cfg.parts)), strict=True)
        sum_products_of_parts(p, q, C, cfg)

    @kernel
    def multiply_chunks(P: of_p, Q: of_q, C: of_chunks, *, cfg: Parts) -> None:
        p, q = zip(*(as_rows(P[i], Q[i]) for i in range(cfg.parts)), strict=True)
        sum_products_of_parts(p, q, C, cfg)

    @program(configs={name: each for name, each in CONFIGS.items() if not (batched and each.chunk)})
    def gemm_f32(A: of_a, B: of_b, C: of_c, *, cfg: Parts) -> None:
        a, b = as_rows(A, B)
        *of_z, M, N = C.shape
        K, in_a = a.shape[-1], of_z[: len(a.shape) - 2]
        L, U, V = (whole_chunks(each, cfg.padded) for each in (K, M, N))
        P = workspace(bf16, (cfg.parts, *in_a, *((L, U) if a_transposed else (M, L))))
        Q = workspace(bf16, (cfg.parts, *of_z, *((L, V) if b_transposed else (N, L))))
        for given, made in ((A, P), (B, Q)):
            splitting = split_matrix if len(given.shape) == 2 else split_batch
            splitting(given, made, cfg=Splitting(cfg.parts, cfg.wide))
        if cfg.chunk:
            part = workspace(f32, (ceil_div(K, cfg.chunk), M, N))
            multiply_chunks(P, Q, part, cfg=cfg)
            add_chunks(part, C, cfg=Adding(cfg.wide))
        else:
            multiply_parts(P, Q, C, cfg=cfg)
        claim_product(a, b, C, cfg.products)

    return gemm_f32


def by_layout(make: Callable[..., MadeT]) -> dict[str, MadeT]:
    """What is made for each layout of matrices, of batches of them, and of batches that share A, by name."""
    return {
        f"{'bmm' if batched else 'gemm'}_{'t' if a else 'n'}{'n' if b else 't'}{'_shared' if shared else ''}_f32": make(
            a_transposed=a, b_transposed=b, batched=batched, shared=shared
        )
        for batched, shared in ((False, False), (True, False), (True, True))
        for a in (False, True)
        for b in (False, True)
        if not (a and shared)
    }


FAMILIES: dict[str, ProgramTemplate] = by_layout(f32_products)


def configuration(name: str) -> Parts | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, (Parts,))
