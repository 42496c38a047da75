"""Offsets of rows that are stored back to back: what operators ask of the tensor; its values are checked at launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from argus.ops.call_path import is_placed
from argus.ops.operands import Tensor


def check_offsets(
    refuse: Callable[[str, str], NoReturn],
    name: str,
    tensor: Tensor,
    beside: tuple[str, Tensor],
    of: str,
    *,
    least: int = 2,
) -> None:
    """Refuses what is not one axis of int32, contiguous and aligned to 16 bytes, on the device of another operand.

    beside: that operand with its name. of: what the offsets are of. least: how many there are, at least.
    """
    if not hasattr(tensor, "data_ptr"):
        refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass `torch.Tensor`s")
    if str(tensor.dtype) != "torch.int32":
        refuse(f"`{name}` expects torch.int32, found {tensor.dtype}", "convert it: `.int()`")
    first, other = beside
    if not is_placed(tensor) or tensor.device != other.device:
        refuse(f"`{name}` is on {tensor.device}, `{first}` on {other.device}", "move all to one GPU: `.cuda()`")
    if len(tensor.shape) != 1 or tensor.shape[0] < least or not tensor.is_contiguous() or tensor.data_ptr() % 16:
        refuse(
            f"`{name}` has shape {tuple(tensor.shape)}, expected one axis of at least {least}, contiguous and aligned",
            f"pass the {name} of {of} from 0 on, `.clone()` of a part",
        )
