"""Tensors of integers in the address space of constants, so that each is loaded once.

The clobber of memory at a wait or a barrier would make the compiler load an integer again behind it, in every iteration
of a loop. LLVM takes memory of that address space to be the same throughout a launch, which E220 has checked.
"""

from __future__ import annotations

from argus.core.ir import Buffer, Copy, Kernel, walk
from argus.emit.integers import tensors_read

UNWRITTEN = """\
#define UNWRITTEN __attribute__((address_space(4)))  // memory that nothing writes during the launch
"""


def unwritten(kernel: Kernel) -> tuple[Buffer, ...]:
    """The tensors whose elements only index expressions load, in parameter order: a copy takes other pointers."""
    copied = {v.buffer for s in walk(kernel.body) if isinstance(s, Copy) for v in (s.source, s.target)}
    return tuple(buffer for buffer in tensors_read(kernel) if buffer not in copied)
