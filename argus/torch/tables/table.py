"""The table of operations that have a meaning as nests, by their packet in aten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from argus.core.index import Index
from argus.nests.affine import Extents
from argus.nests.nest import Axis, Constant, Nest
from argus.torch.values import Value


class Context(Protocol):
    """What an entry is given of the operation that it lowers."""

    @property
    def name(self) -> str:
        """The operation's name in aten."""
        ...

    @property
    def shape(self) -> tuple[Index, ...]:
        """The shape of the result; of several, of the first."""
        ...

    @property
    def dtype(self) -> str:
        """The type of the result's elements."""
        ...

    def value(self, arg: object) -> Value:
        """A tensor or a number."""
        ...

    def is_dense(self, arg: object, *, turned: bool = False) -> bool:
        """Whether torch takes the tensor to be dense, last axis fastest, from the start of its memory.

        turned: or the last but one fastest.
        """
        ...

    def operand(self, arg: object) -> Value:
        """A tensor, in memory unless it is a view of one: for operations that read it many times."""
        ...

    def size(self, arg: object) -> Index:
        """An integer that may be a size."""
        ...

    def axis(self, extent: Index) -> Axis:
        """A new axis."""
        ...

    def results(self) -> list[tuple[tuple[Index, ...], str]]:
        """The shape and type of each result."""
        ...

    def uses(self, result: int) -> bool:
        """Whether something needs the result of this number."""
        ...

    @property
    def extents(self) -> Extents:
        """The extents of the axes made so far."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the moments of a row that a cluster of blocks holds are not of parts."""
        ...

    def new_name(self) -> str:
        """A name for tensors of this operation."""
        ...

    def emitted(self, nest: Nest) -> Value:
        """The output of a nest, which becomes one of the graph's."""
        ...

    def called(self, operator: object, *args: object) -> Value:
        """The result of an operator of Argus on tensors, which may be views."""
        ...

    def stored(self, value: Value) -> Value:
        """The value in memory: computed once, by a nest of its own."""
        ...


Entry = Callable[..., "Value | tuple[Value, ...]"]
ENTRIES: dict[Any, Entry] = {}


class NotCovered(Exception):  # noqa: N818 reason: it ends the lowering of one operation, as a result
    """An operation, or a use of it, that has no meaning as a nest here. Its text says what."""


def constant(value: float) -> Constant:
    """A number of the graph. Raises NotCovered for an integer that float64 does not have."""
    found = float(value)
    if isinstance(value, int) and int(found) != value:
        raise NotCovered(f"the integer {value}, which float64 does not have")
    return Constant(found)


def lowers(*names: str) -> Callable[[Entry], Entry]:
    """Register an entry for packets of aten; overloads that this torch lacks are left out."""

    def register(entry: Entry) -> Entry:
        for name in names:
            packet = getattr(torch.ops.aten, name, None)
            if packet is not None:
                ENTRIES[packet] = entry
        return entry

    return register
