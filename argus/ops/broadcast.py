"""Products of operands with any number of axes, as `torch.matmul` takes them: at most one axis of products is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MATRIX, _BATCH = 2, 3
"""Numbers of axes."""


def is_folded(a: Any, b: Any) -> bool:  # noqa: ANN401 reason: torch's
    """Whether both are matrices, or batches of them, as kernels take them."""
    return {len(a.shape), len(b.shape)} <= {_MATRIX, _BATCH}


def shape_of(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape of a product of operands of these shapes, which can be multiplied."""
    rows, columns = a[-2:-1] if len(a) > 1 else (), b[-1:] if len(b) > 1 else ()
    return (*common(a[:-2], b[:-2]), *rows, *columns)


def common(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The axes that both broadcast to; -1 where they do not."""
    longest = max(len(a), len(b))
    left, right = ((1,) * (longest - len(each)) + tuple(each) for each in (a, b))
    return tuple(_extent(*pair) for pair in zip(left, right, strict=True))


def _extent(one: int, other: int) -> int:
    return other if one == 1 else one if other in (1, one) else -1


def folded(a: Any, b: Any) -> tuple[Any, Any]:  # noqa: ANN401 reason: torch's
    """The operands with two axes or three each, and the same products in the same order.

    Vectors become a row or a column. An operand is copied only if its axes of products are expanded, or are not evenly
    spaced in memory.
    """
    rows, columns = (a[None, :] if len(a.shape) == 1 else a), (b[:, None] if len(b.shape) == 1 else b)
    if len(columns.shape) == _MATRIX or len(rows.shape) == _MATRIX:
        return _flat(rows), _flat(columns)
    shape = common(rows.shape[:-2], columns.shape[:-2])
    return _flat(_spread(rows, shape)), _flat(_spread(columns, shape))


def _spread(tensor: Any, shape: tuple[int, ...]) -> Any:  # noqa: ANN401 reason: torch's
    """The tensor with these axes of products; one matrix alone is left as it is, since kernels repeat it."""
    alone = all(extent == 1 for extent in tensor.shape[:-2])
    return tensor.reshape(*tensor.shape[-2:]) if alone else tensor.expand(*shape, *tensor.shape[-2:])


def _flat(tensor: Any) -> Any:  # noqa: ANN401 reason: torch's
    return tensor.flatten(0, -3) if len(tensor.shape) > _BATCH else tensor
