"""Instructions as data: an `Atom` records an instruction's operands, arithmetic, completion, cost and spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from argus.core.dtype import DType
from argus.core.layout import TV

Space = Literal["global", "shared", "register", "barrier", "counter", "map"]
Queue = Literal["cp_async", "bulk", "wgmma", "vmem", "lds"]


Major = Literal["k", "mn"]
"""The index of a matrix along which elements are contiguous in memory: k, or m of A and n of B ("mn")."""


@frozen
class Canonical:
    """A canonical shared-memory layout that a matrix descriptor can encode [PTX ISA, matrix descriptors].

    swizzle: the swizzle mode in bytes, which is the length of a row: 16-byte chunks of 8 rows are permuted.
    16 means rows of one chunk, no permutation.
    """

    major: Major
    swizzle: int


@frozen
class Operand:
    """One operand of an instruction.

    dtype: None accepts any type whose elements fill `vector_bits`.
    tile: extents, coordinates numbered first axis fastest; tv: its thread-value layout, None for one address per
    thread. vector_bits: contiguous bits that one thread moves; align: required alignment of its address, in bytes.
    canonical: for a matrix in shared memory, the layouts that the instruction can read.
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
    """The tile that a copy issued by one thread (TMA, bulk) can move.

    axes: axes of the tensor; the box extends along the last two (of one axis: along it), with extent 1 along the
    others. extent: the largest extent along an axis of the box (0: any). multiple: row length of the box and row
    stride of the tensor must be multiples of this many bytes. span: the largest row length in bytes (0: any); with a
    span, 16-byte chunks are swizzled by Sw<log2(span/16),4,3> of the address.
    """

    axes: int
    extent: int = 0
    multiple: int = 16
    span: int = 0


@frozen
class Completion:
    """When an operation takes effect.

    queue: the completion queue that counts it; None: complete before the next statement.
    signal: it completes on an mbarrier instead, by transaction bytes.
    group: "commit": a `Commit` closes a group, one entry of the queue; "each": every statement is an entry.
    tracked: the hardware or the compiler waits before a register result is used.
    """

    queue: Queue | None = None
    signal: bool = False
    group: Literal["commit", "each"] = "each"
    tracked: bool = True


@frozen
class Arithmetic:
    """What a matrix instruction computes: products exact in `accumulate`, summed in `accumulate` in any order.

    Sums of integers wrap around, so that they are exact wherever the exact sum fits.
    """

    product: DType
    accumulate: DType


@frozen
class Atom:
    """One instruction: operands, arithmetic, completion, cost and spelling.

    unit: threads that execute it together. mnk: extents of a matrix instruction. edge: what the hardware does outside
    a tensor. phases: lanes whose shared-memory accesses are served together, for the bank model. issue_cycles: cycles
    for which it occupies the issuing unit. spelling: per target, a format string over operand names. box: the tile
    that a copy issued by one thread can move. combine: the operation of a reduction to memory, atomic per element.
    direct: a load to LDS: the lanes of a wave write consecutive addresses of shared memory, whatever address each
    reads.
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
        """Contiguous bits that one thread moves when a copy executes once."""
        return max(operand.vector_bits for operand in self.operands.values())

    def __str__(self) -> str:
        return self.name
