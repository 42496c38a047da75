"""Chooses configurations for gfx942, and refuses calls for which no kernel for it is proved."""

from __future__ import annotations

from functools import lru_cache

from argus.kernels.attention import CDNA3
from argus.ops.choice import family_type, stored_or_modelled
from argus.ops.element_types import no_kernel

_TARGET = "gfx942"


@lru_cache(maxsize=4096)
def candidates(
    family: str, sizes: tuple[int, ...], *, a_transposed: bool, b_transposed: bool, device: str
) -> tuple[str, ...]:
    """As `argus.ops.choice.candidates`. Kernels multiply one pair of row-major matrices, a and the transpose of b.

    Raises ArgusError (E414) for any others.
    """
    *batch, m, n, k = sizes
    if batch or a_transposed or b_transposed:
        raise no_kernel("matmul", _TARGET, "with a batch of matrices `b`" if batch else "of column-major operands")
    return stored_or_modelled(m, n, k, family_type(family), device, _TARGET)


def attention(width: int, queries: int, keys: int, pairs: int, *, causal: bool) -> str:
    """As `argus.kernels.attention.choose`. Raises ArgusError (E414) for causal attention of more queries than keys."""
    del pairs
    if causal and queries > keys:
        raise no_kernel("attention", _TARGET, "that is causal, with more queries than keys")
    config = "cdna3_causal" if causal else "cdna3"
    assert config in CDNA3[width]
    return config
