"""The options of `argus.attention`: windows, the scale of scores, their soft cap; and the operands it takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

from argus.kernels.schedules.attention import LEAST_SCALE
from argus.ops.call_path import is_placed, refuser
from argus.ops.operands import Tensor

Window = int | tuple[int | None, int | None] | None
"""Keys to the left and right of a query's own that it sees, None for all; one number for both."""
Ends = tuple[int | None, int | None]

E4M3, TYPES = "torch.float8_e4m3fn", ("torch.bfloat16", "torch.float16")
"""The element types of operands, by torch's names."""
_CHUNK = 8
"""The elements of 16 bits between which rows begin."""

refuse = refuser("attention")


def ends(window: Window) -> Ends | None:
    """A window as a pair. Raises ArgusError (E401) for anything but numbers from 0 on and None."""
    if window is None:
        return None
    given: object = window
    pair = given if isinstance(given, tuple) else (given, given)
    if len(pair) != 2 or not all(each is None or _counts(each) for each in pair):
        refuse(f"`window` is {window!r}, expected (left, right), numbers from 0 on or None", "give None for no end")
    left, right = pair
    return left, right


def _counts(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def seen(window: Ends | None, rows: int, keys: int, *, causal: bool) -> bool | tuple[int, int]:
    """Whether the mask is causal; or the window, where it is another one, as numbers up to `keys` and `rows`."""
    if window is None:
        return causal
    left = keys if window[0] is None else min(window[0], keys)  # the last query's own key is the last one
    right = 0 if causal else rows if window[1] is None else min(window[1], rows)
    return right == 0 if left == keys and right in (0, rows) else (left, right)


def factors(scale: float | None, softcap: float | None, width: int) -> tuple[float, ...]:
    """The factor of the scores, in powers of 2; with a soft cap that of their tanh, and the factor within.

    Raises ArgusError (E401) for a number that is not between 2^-100 and 2^100.
    """
    wanted = 1 / sqrt(width) if scale is None else scale
    _bounded("scale", wanted, "negate `q` for a scale below 0")
    if softcap is None:
        return (wanted / log(2.0),)
    _bounded("softcap", softcap, "give None for scores without a cap")
    within = wanted / softcap
    _bounded("scale / softcap", within, "give numbers that are less unlike")
    return softcap / log(2.0), within


def _bounded(name: str, number: float, repair: str) -> None:
    if not LEAST_SCALE < number < 1 / LEAST_SCALE:
        refuse(f"`{name}` is {number:g}, expected between 2^-100 and 2^100", repair)


def check_operand(name: str, tensor: Tensor, beside: Tensor, axes: Sequence[str], types: Sequence[str] = TYPES) -> None:
    """Raises ArgusError (E401) for an operand of another type, device, rank or layout. axes: what its axes are of."""
    if not hasattr(tensor, "data_ptr"):
        refuse(f"`{name}` is not a torch tensor, found {type(tensor).__name__}", "pass `torch.Tensor`s")
    if str(tensor.dtype) not in types:
        refuse(f"`{name}` expects {' or '.join(types)}, found {tensor.dtype}", "convert it: `.bfloat16()`")
    if tensor.dtype != beside.dtype:
        refuse(f"`q` is {beside.dtype} and `{name}` {tensor.dtype}", "convert one to the type of the other")
    if not is_placed(tensor):
        refuse(f"`{name}` is on {tensor.device}, expected a GPU", "move it: `.cuda()`")
    if tensor.device != beside.device:
        refuse(f"`q` is on {beside.device} and `{name}` on {tensor.device}", "move one to the other's device")
    if len(tensor.shape) != len(axes):
        refuse(f"`{name}` expects {len(axes)} axes, found {len(tensor.shape)}", f"pass ({', '.join(axes)})")
    strides, chunk = tensor.stride(), 2 * _CHUNK if str(tensor.dtype) == E4M3 else _CHUNK
    aligned = strides[-1] == 1 and all(
        each % chunk == 0 or extent == 1 for each, extent in zip(strides[:-1], tensor.shape, strict=False)
    )
    if 0 not in tensor.shape and (not aligned or tensor.data_ptr() % 16):
        refuse(
            f"`{name}` has strides {strides}, expected multiples of {chunk} and 1, and an address that 16 divides",
            "copy it: `.contiguous()`",
        )
