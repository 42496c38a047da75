"""Instructions as data: one `Atom` is all that Argus knows of an instruction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from argus.core.dtype import DType
from argus.core.layout import TV

Space = Literal["global", "shared", "register", "barrier", "counter", "map"]
Queue = Literal["cp_async", "bulk", "wgmma", "vmem", "lds"]


Major = Literal["k", "mn"]
"""The index of a matrix whose neighbours are neighbours in memory; "mn": rows of A, rows of B."""


@frozen
class Canonical:
    """A layout of shared memory that a matrix descriptor can name.

    swizzle: bytes of one row of a slab, whose 16-byte chunks are permuted within 8 rows; 16: rows of one chunk, none
    permuted.
    """

    major: Major
    swizzle: int


@frozen
class Operand:
    """One operand.

    dtype: None accepts any type whose elements fill `vector_bits`.
    tile: extents, coordinates numbered first axis fastest; tv: who holds what, None for one address a thread.
    vector_bits: contiguous bits that one thread moves; align: bytes its address must be a multiple of.
    canonical: for a matrix in shared memory, the layouts that the instruction reads.
    """

    space: Space
    dtype: DType | None = None
    tile: tuple[int, ...] = ()
    tv: TV | None = None
    vector_bits: int = 0
    align: int = 1
    canonical: tuple[Canonical, ...] = ()


@frozen
class Box:
    """What a copy of one thread asks of the tile that it moves.

    axes: axes of the tensor; the box lies along the last ones, at one coordinate of each before. extent: the largest
    extent along one of them (0: any). multiple: bytes that a row of the box, and the distance of the tensor's rows, are
    multiples of. span: bytes that a row of the box may have at most (0: any); where there is a span, chunks of 16 bytes
    are permuted as in Sw<log2(span/16),4,3> of the address.
    """

    axes: int
    extent: int = 0
    multiple: int = 16
    span: int = 0


@frozen
class Completion:
    """When an operation takes effect.

    queue: the completion queue that counts it; None: done when the next statement starts.
    signal: it completes on a barrier instead, with its bytes.
    group: whether a `Commit` makes what was issued one entry of the queue, or each statement is one.
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
    unit is busy. spelling: per target, a format string over operand names. box: what a copy of one thread moves.
    combine: the operation by which a copy joins what it moves with what is there, each element by itself.
    direct: lanes of a wave write neighbouring addresses of shared memory, in order, whatever each reads.
    """

    name: str
    targets: frozenset[str]
    unit: int
    operands: Mapping[str, Operand]
    completion: Completion
    spelling: Mapping[str, str]
    mnk: tuple[int, int, int] | None = None
    arithmetic: Arithmetic | None = None
    proxy: Literal["generic", "async"] = "generic"
    edge: Literal["none", "box_zero", "range_zero"] = "none"
    phases: tuple[tuple[int, ...], ...] = ()
    issue_cycles: float = 0.0
    box: Box | None = None
    combine: str | None = None
    direct: bool = False

    @property
    def vector_bits(self) -> int:
        """Contiguous bits that one thread moves in one execution of a copy."""
        return max(operand.vector_bits for operand in self.operands.values())

    def __str__(self) -> str:
        return self.name
