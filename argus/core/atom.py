"""Instructions as data: one `Atom` is all that Argus knows of an instruction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from argus.core.dtype import DType
from argus.core.layout import TV

Space = Literal["global", "shared", "register", "barrier", "counter"]
Queue = Literal["cp_async", "bulk", "wgmma", "vmem", "lds"]


@frozen
class Operand:
    """One operand.

    dtype: None accepts any type whose elements fill `vector_bits`.
    tile: extents, coordinates numbered first axis fastest; tv: who holds what, None for one address a thread.
    vector_bits: contiguous bits that one thread moves; align: bytes its address must be a multiple of.
    """

    space: Space
    dtype: DType | None = None
    tile: tuple[int, ...] = ()
    tv: TV | None = None
    vector_bits: int = 0
    align: int = 1


@frozen
class Moments:
    """When an operation takes effect.

    queue: the completion queue that counts it; None: done when the next statement starts.
    tracked: the hardware or compiler waits before a register result is used.
    """

    queue: Queue | None = None
    signal: bool = False
    group: Literal["commit", "each"] = "each"
    tracked: bool = True


@frozen
class Arithmetic:
    """What a matrix instruction computes: products exact in `accumulate`, sums in `accumulate`, any order."""

    product: DType
    accumulate: DType


@frozen
class Atom:
    """One instruction: operands, arithmetic, moments, cost and spelling.

    unit: threads that execute it together. mnk: extents of a matrix instruction. edge: what the hardware
    does outside a tensor. phases: lanes served together, for the bank model. issue_cycles: cycles the issuing
    unit is busy. spelling: per target, a format string over operand names.
    """

    name: str
    targets: frozenset[str]
    unit: int
    operands: Mapping[str, Operand]
    moments: Moments
    spelling: Mapping[str, str]
    mnk: tuple[int, int, int] | None = None
    arithmetic: Arithmetic | None = None
    proxy: Literal["generic", "async"] = "generic"
    edge: Literal["none", "box_zero", "range_zero"] = "none"
    phases: tuple[tuple[int, ...], ...] = ()
    issue_cycles: float = 0.0

    @property
    def vector_bits(self) -> int:
        """Contiguous bits that one thread moves in one execution of a copy."""
        return max(operand.vector_bits for operand in self.operands.values())

    def __str__(self) -> str:
        return self.name
