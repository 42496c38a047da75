"""What a graph of aten operations becomes: nests and operations that are called, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Union, cast

import torch
from attrs import frozen
from torch._ops import HigherOrderOperator
from torch.fx.node import map_aggregate

from argus.core.index import Index
from argus.nests.nest import Expr, Nest, TensorType

NAMES_OF_TYPES = {
    torch.float32: "f32",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.bool: "bool",
}
TORCH_TYPES = {name: dtype for dtype, name in NAMES_OF_TYPES.items()}


VIEWS: tuple[Any, ...] = tuple(
    getattr(getattr(torch.ops.aten, name), overload)
    for name, overload in (
        ("permute", "default"),
        ("transpose", "int"),
        ("t", "default"),
        ("view", "default"),
        ("unsqueeze", "default"),
        ("expand", "default"),
        ("squeeze", "dims"),
        ("select", "int"),
        ("slice", "Tensor"),
    )
)
"""Operations that make views of a tensor."""
MOVES: tuple[Any, ...] = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten._to_copy.default)
"""Operations that copy a number from one device to another, if no reason for them is given."""


@frozen
class NestStep:
    """A nest, and the operation of the graph whose result it is, or is a part of."""

    nest: Nest
    node: str


@frozen(slots=False)
class EagerStep:
    """An operation that eager torch runs, by the name of its node. why: what is not covered.

    target: called with args and keywords, in which a `Tensor` is a tensor's name, an `Index` a size and a `Number` one
    of sizes. results: the names of the tensors that it returns.
    """

    node: str
    operation: str
    why: str
    target: Any
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    results: tuple[str | None, ...]
    single: bool

    @cached_property
    def is_plain(self) -> bool:
        """Whether its arguments are tensors and what all calls have in common."""
        others = [each for each in (*self.args, *self.keywords.values()) if not isinstance(each, Tensor)]
        tensors = any(isinstance(each, Tensor) for each in self.keywords.values())
        return not tensors and all(map(_is_constant, others))

    @property
    def allocates(self) -> bool:
        """Whether it computes nothing: room for a tensor, a view for an operator of Argus, a number's copy."""
        return self.target is torch.ops.aten.empty.memory_format or (not self.why and self.target in (*VIEWS, *MOVES))

    @property
    def is_proved(self) -> bool:
        """Whether it is an operator of Argus, whose kernels are proved, by itself or on copies that it writes."""
        return getattr(self.called, "namespace", "") == "argus"

    @property
    def called(self) -> Any:  # noqa: ANN401 reason: torch's
        """The operator."""
        return self.args[0] if isinstance(self.target, HigherOrderOperator) and self.args else self.target

    @property
    def reads(self) -> set[str]:
        """The tensors that it is given."""
        found: set[str] = set()

        def note(arg: Any) -> Any:  # noqa: ANN401 reason: an argument of an operation
            if isinstance(arg, Tensor):
                found.add(arg.name)
            return arg

        map_aggregate((self.args, dict(self.keywords)), note)
        return found


def _is_constant(arg: object) -> bool:
    if isinstance(arg, list | tuple):
        return all(map(_is_constant, cast(Sequence[object], arg)))
    return arg is None or isinstance(arg, bool | int | float | str | torch.dtype | torch.device)


@frozen
class Number:
    """A number that torch computes of sizes."""

    value: Expr


@frozen
class Tensor:
    """A tensor in memory, by its name."""

    name: str


@frozen
class Constant:
    """A tensor that belongs to the graph: its name, its attribute, and the device where it is needed, if another."""

    name: str
    target: str
    device: torch.device | None = None


Step = Union[NestStep, EagerStep]


@frozen
class Lowered:
    """A graph as steps, in order. types: of tensors by name. outputs: a `Tensor`, `Index`, `Number` or constant each.

    inputs: of each placeholder in order, its name, and the size that it is, if it is one. held: the
    tensors that belong to the graph.
    """

    steps: tuple[Step, ...]
    types: Mapping[str, TensorType]
    inputs: tuple[tuple[str, Index | None], ...]
    held: tuple[Constant, ...]
    outputs: tuple[object, ...]
