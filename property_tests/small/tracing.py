"""What the families of right programs share: tensors of drawn types, waits of either target, layouts that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argus.core.atom import Atom
from argus.core.diagnostic import ArgusError
from argus.core.dtype import DType
from argus.core.ir import Kernel, Program
from argus.language import (
    Fragment,
    Template,
    Tensor,
    assume,
    gfx942,
    global_load,
    global_store,
    kernel,
    lds,
    program,
    sm_90a,
    spread,
    sync,
    vmem,
)
from property_tests.small.choosing import Choose

TARGETS = ("sm_90a", "gfx942")
_TARGETS = {"sm_90a": sm_90a, "gfx942": gfx942}
Tile = tuple[int, int]


def declared(function: Callable[..., None], target: str, threads: int, /, **tensors: tuple[str, DType]) -> Template:
    """A function as a kernel whose parameters are tensors of these axes and types."""
    function.__annotations__ = {name: Tensor[spec] for name, spec in tensors.items()}
    return kernel(target=_TARGETS[target], threads=threads)(function)


def trace(function: Callable[..., None], target: str, threads: int, /, **tensors: tuple[str, DType]) -> Kernel:
    """The kernel of such a function."""
    return declared(function, target, threads, **tensors).trace()


def trace_clustered(
    function: Callable[..., None], cluster: tuple[int, ...], threads: int, /, **tensors: tuple[str, DType]
) -> Kernel:
    """The kernel of such a function on sm_90a, by clusters of blocks."""
    function.__annotations__ = {name: Tensor[spec] for name, spec in tensors.items()}
    return kernel(target=sm_90a, threads=threads, cluster=cluster)(function).trace()


def trace_program(function: Callable[..., None], /, **tensors: tuple[str, DType]) -> Program:
    """The program of a function that launches kernels on tensors of these axes and types."""
    function.__annotations__ = {name: Tensor[spec] for name, spec in tensors.items()}
    return program(function).trace()


def arrived(target: str) -> None:
    """Wait for loads into registers; on sm_90a the hardware does at their first use."""
    if target == "gfx942":
        vmem.wait(0)
        lds.wait(0)


def meet(target: str) -> None:
    """Make what the threads stored in shared memory visible to each other."""
    if target == "gfx942":
        lds.wait(0)
    sync()


def fits(tile: Tile, threads: int, vector: int) -> bool:
    """Whether the threads can be spread over the tile, `vector` consecutive elements each."""
    try:
        spread(tile, threads=threads, vector=vector)
    except ArgusError:
        return False
    return True


def vectors(tile: Tile, threads: int, dtype: DType, least: int = 1) -> tuple[int, ...]:
    """The vectors of up to 16 bytes by which the threads can be spread over the tile, the widest first."""
    widths = (16, 8, 4, 2, 1)
    return tuple(v for v in widths if least <= v <= 128 // dtype.bits and fits(tile, threads, v))


def choose_tile(
    choose: Choose, threads: int, dtype: DType, rows: Sequence[int], columns: Sequence[int], least: int = 1
) -> Tile:
    """A tile of one of these extents over which the threads can be spread, at least `least` elements each."""
    every = [(m, n) for m in rows for n in columns if vectors((m, n), threads, dtype, least)]
    return choose(every)


def one_by_one(dtype: DType) -> tuple[Atom, ...]:
    """Loads and stores of single elements, for rows that may begin anywhere."""
    return tuple(atom for atom in (*global_load, *global_store) if atom.vector_bits == dtype.bits)


def assume_rows(of: Tensor, vector: int) -> None:
    """Assume that rows are whole vectors, and that indices fit 32 bits."""
    if vector > 1:
        assume(of.shape[-1] % vector == 0)


def narrowed(value: Fragment, dtype: DType) -> Fragment:
    return value if value.dtype == dtype else value.to(dtype)
