"""Operands of tests with torch."""

from __future__ import annotations

from typing import Any

import torch

TORCH: Any = torch
"""Whose types are open in part, or private."""


def plain(tensor: Any) -> Any:  # noqa: ANN401 reason: torch's types leave the elements of lists open
    """The elements as Python's numbers, in lists."""
    return tensor.tolist()


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> torch.Tensor:
    """Normal numbers on the CPU, the same each time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
