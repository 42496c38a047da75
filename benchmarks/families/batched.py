"""Batched bf16 GEMM of eight or more products vs. torch.bmm: C[z] = A[z] @ B[z]^T. Shapes are those of one product."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families.gemm import Shape

OUTPUT, PEER = "C", "torch.bmm"
SHAPES: tuple[Shape, ...] = (
    (4096, 4096, 4096),
    (2048, 2048, 2048),
    (1024, 1024, 1024),
    (512, 512, 512),
    (128, 128, 64),
)
_ELEMENTS = 1 << 27
_MOST = 512


def products(shape: Shape) -> int:
    """The number of products with 2^27 elements of C in all, at least 8."""
    return max(8, min(_MOST, _ELEMENTS // (shape[0] * shape[1])))


def variants() -> Mapping[str, Callable[[], Any]]:
    from argus.kernels.batched import NT_CONFIGS, bmm_nt  # noqa: PLC0415 reason: the GPU's machine has no solver

    return {name: lambda n=name: bmm_nt.trace(n) for name in NT_CONFIGS}


def sizes(shape: Shape) -> dict[str, int]:
    return {"Z": products(shape), **dict(zip("MNK", shape, strict=True))}


def tensors(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    m, n, k = shape
    z = products(shape)

    def normal(*extents: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(*extents, device="cuda", dtype=torch.bfloat16)

    return {"A": normal(z, m, k), "B": normal(z, n, k), "C": torch.empty(z, m, n, device="cuda", dtype=torch.bfloat16)}


def exact(torch: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The products in float64, and the scale of errors: the element's magnitude plus the square root of K."""
    result = torch.bmm(given["A"].double(), given["B"].double().mT)
    return result, result.abs() + given["A"].shape[-1] ** 0.5


def peers(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    a, b, c = (given[name] for name in "ABC")
    return {PEER: lambda: torch.bmm(a, b.mT, out=c)}


def checked(random: Random) -> list[Shape]:
    """Whole tiles, partial tiles in every dimension, single rows."""
    shapes = [(128, 256, 64), (64, 8, 8), (1, 8, 8), (200, 264, 136)]
    return shapes + [(random.randint(1, 900), 8 * random.randint(1, 110), 8 * random.randint(1, 110)) for _ in range(6)]


def select(shape: Shape) -> str | None:
    from argus.ops.choice import select_batched as chosen  # noqa: PLC0415 reason: as above

    return chosen(products(shape), *shape)
