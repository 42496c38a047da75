"""GEMM of up to 16 rows of f32: a warp has several rows of the other matrix, so that each element of A serves for all.

Rows are multiples of 16 bytes. A block's warps read the same elements of A, mostly from the first cache.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# Reason: parameters are annotated with tensors of a variable size, by which one text serves all numbers of rows.
# Without `from __future__ import annotations`, since such annotations are evaluated where they stand.

from collections.abc import Sequence

from attrs import frozen

from argus.kernels.config_names import config_of
from argus.kernels.schedules.compensated import add_compensated
from argus.language import (
    TV,
    Layout,
    Template,
    Tensor,
    assert_equals,
    assume,
    block_id,
    ceil_div,
    copy,
    elements,
    f32,
    first_lane,
    global_store,
    kernel,
    load,
    loop,
    sm_90a,
    thread,
    total,
    warp,
    zeros,
)

MOST = 16
"""The most rows of A: each costs a load and FMAs for each element of B."""
_MOST_COMPENSATED = 16
"""Sums of a thread."""
_VECTOR = 4
"""Elements of 16 bytes."""


@frozen
class Several:
    """Blocks of `warps` warps, which have `rows` rows of the other matrix each, and read `steps` vectors at a time."""

    rows: int = 4
    warps: int = 4
    steps: int = 1
    target = sm_90a

    @property
    def threads(self) -> int:
        return self.warps * self.target.unit

    @property
    def layout(self) -> TV:
        """The elements (row, column) of a tile: lanes have neighbouring vectors of all rows of their warp."""
        lanes, high = self.target.unit, self.rows * self.warps
        across = lanes * _VECTOR
        return TV(
            Layout((lanes, self.warps), (_VECTOR * high, self.rows)),
            Layout((_VECTOR, self.steps, self.rows), (high, across * high, 1)),
            (high, across * self.steps),
        )


CONFIGS = {"several": Several(), "several_rows2": Several(rows=2)}


def _sums(few: Tensor, many: Tensor, stored: Sequence[Tensor], cfg: Several) -> None:
    """stored[m][n] = the product of row m of `few` with row n of `many`."""
    rows, length = many.shape
    assume(length % _VECTOR == 0)
    high, wide = cfg.layout.tile
    (at,) = block_id((ceil_div(rows, high),))
    sums = [zeros(f32, cfg.layout.partial(1)) for _ in stored]
    # of more rows, registers would not suffice
    lost = [zeros(f32, cfg.layout.partial(1)) for _ in stored if cfg.rows * len(stored) <= _MOST_COMPENSATED]
    for chunk in loop(ceil_div(length, wide)):
        v = load(many.tile((high, wide), (at, chunk)), cfg.layout, edge=0)
        for m, own in enumerate(sums):
            a = load(few[m].tile((wide,), (chunk,)), cfg.layout.axis(1), edge=0)
            term = (a * v).sum(1, within=thread)
            if lost:
                add_compensated(own, lost[m], term)
            else:
                own[:] = own + term
    stores = tuple(each for each in global_store if each.vector_bits == f32.bits)
    for own, to in zip(sums, stored, strict=True):
        copy(own.sum(1, within=warp), to.tile((high,), (at,)), via=stores, by=first_lane, edge=0)


def several_rows(count: int) -> Template:
    """C = A @ B^T, of so many rows of A."""

    @kernel(configs=CONFIGS, name=f"gemm_of_{count}_rows")
    def made(
        A: Tensor[f"{count} K", f32], B: Tensor["N K", f32], C: Tensor[f"{count} N", f32], *, cfg: Several
    ) -> None:
        _sums(A, B, [C[m] for m in range(count)], cfg)
        of_a, of_b = elements(A), elements(B)
        assert_equals(C, lambda m, n: total(lambda k: of_a(m, k) * of_b(n, k), over=B.shape[1]))

    return made


def several_columns(count: int) -> Template:
    """C = A @ B^T, of so many rows of B."""

    @kernel(configs=CONFIGS, name=f"gemm_with_{count}_columns_f32")
    def made(
        A: Tensor["M K", f32], B: Tensor[f"{count} K", f32], C: Tensor[f"M {count}", f32], *, cfg: Several
    ) -> None:
        _sums(B, A, [C.T[n] for n in range(count)], cfg)
        of_a, of_b = elements(A), elements(B)
        assert_equals(C, lambda m, n: total(lambda k: of_a(m, k) * of_b(n, k), over=A.shape[1]))

    return made


ROWS: dict[int, Template] = {count: several_rows(count) for count in range(2, MOST + 1)}
COLUMNS: dict[int, Template] = {count: several_columns(count) for count in range(2, MOST + 1)}
"""By the number of rows of A, and of B."""


def configuration(name: str) -> Several | None:
    """The configuration of a name: a shipped one, or one encoded by `argus.kernels.config_names`; None for neither."""
    return CONFIGS.get(name) or config_of(name, (Several,))
