"""What operators ask of tensors, by tables: one check of types, devices, gradients, numbers of axes, and shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, Protocol

from attrs import frozen

from argus.ops.call_path import is_placed, torch


class Checked(Protocol):
    """The part of torch.Tensor that is used here."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> object: ...
    @property
    def device(self) -> Any: ...  # noqa: ANN401 reason: torch's
    @property
    def is_cuda(self) -> bool: ...
    @property
    def requires_grad(self) -> bool: ...


Refuse = Callable[[str, str], NoReturn]
"""Raises ArgusError (E401) with a message and a repair."""
_FEW = 2


@frozen
class Asked:
    """What is asked of a tensor. types: of its elements, by torch's names, that to convert to first.

    axes: what its axes are of, in order; empty if the operator looks at its shape itself. differentiable: it may
    require a gradient. what: words for an element's type.
    """

    types: Collection[str]
    axes: tuple[str, ...] = ()
    differentiable: bool = False
    what: str = "elements of type "


def check_operands(
    refuse: Refuse,
    given: Mapping[str, tuple[Checked, Asked]],
    *,
    lacks: str,
    beside: tuple[str, Checked] | None = None,
) -> None:
    """Refuses operands, by name, that are not as asked, or not on the GPU of the first one, or of `beside`.

    lacks: what has no gradient, such as "this kernel lacks".
    """
    for name, (tensor, asked) in given.items():
        if not hasattr(tensor, "data_ptr"):
            refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass `torch.Tensor`s")
        if str(tensor.dtype) not in asked.types:
            told = (" or " if len(asked.types) <= _FEW else ", ").join(asked.types)
            repair = f"convert it: `.to({next(iter(asked.types))})`"
            refuse(f"`{name}` expects {asked.what}{told}, found {tensor.dtype}", repair)
        if not is_placed(tensor):
            refuse(f"`{name}` is on {tensor.device}, expected a GPU", "move it: `.cuda()`")
        if not asked.differentiable and tensor.requires_grad and torch().is_grad_enabled():
            refuse(f"`{name}` requires a gradient, which {lacks}", "use `torch.no_grad()` or `.detach()`")
        first, other = beside = beside or (name, tensor)
        if tensor.device != other.device:
            refuse(f"`{first}` is on {other.device} and `{name}` on {tensor.device}", "move one to the other's device")
        if asked.axes and len(tensor.shape) != len(asked.axes):
            message = f"`{name}` expects {len(asked.axes)} axes, found {len(tensor.shape)}"
            refuse(message, f"pass ({', '.join(asked.axes)})")


def check_same_types(refuse: Refuse, **tensors: Checked) -> None:
    """Refuses operands, by name, whose elements are not of the type of the first one's."""
    (first, one), *others = tensors.items()
    for name, tensor in others:
        if str(tensor.dtype) != str(one.dtype):
            repair = f"convert one: `.to({one.dtype})`"
            refuse(f"`{first}` has elements of type {one.dtype} and `{name}` of {tensor.dtype}", repair)


def check_shape(refuse: Refuse, name: str, tensor: Checked, wanted: tuple[int, ...], repair: str) -> None:
    """Refuses an operand of another shape."""
    if tuple(tensor.shape) != wanted:
        refuse(f"`{name}` is {tuple(tensor.shape)}, expected {wanted}", repair)
