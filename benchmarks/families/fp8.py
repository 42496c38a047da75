"""C = scale_a * scale_b * (A @ B^T) of e4m3 in bf16, one scale a matrix, beside torch's scaled product."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argus.core.ir import Kernel

PEER = "scaled_mm"
OUTPUT = "C"
SHAPES = (
    *((4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (4096, 14336, 4096), (4096, 4096, 14336)),
    (16384, 8192, 2048),
)


def variants() -> Mapping[str, Callable[[], Kernel]]:
    from argus.kernels.fp8 import CONFIGS, gemm_fp8  # noqa: PLC0415 reason: the GPU's machine has no solver

    return {name: lambda name=name: gemm_fp8.trace(name) for name in CONFIGS}


def sizes(shape: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip("MNK", shape, strict=True))


def tensors(torch: Any, shape: tuple[int, int, int]) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    m, n, k = shape

    def quantised(rows: int) -> Any:  # noqa: ANN401 reason: untyped
        return torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn)

    def scale() -> Any:  # noqa: ANN401 reason: untyped
        return torch.rand(1, device="cuda") + 0.5

    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return {"A": quantised(m), "B": quantised(n), "scale_a": scale(), "scale_b": scale(), "C": out}


def exact(torch: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    """The unit adds products of 8-bit floats with some 13 bits of fraction: its error grows with the sum of sizes."""
    a, b = given["A"].double(), given["B"].double()
    scale = given["scale_a"].double() * given["scale_b"].double()
    result = (a @ b.T) * scale
    del torch
    return result, result.abs() + (a.abs() @ b.abs().T) * scale / 16


def peers(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    def scaled() -> object:
        return torch._scaled_mm(
            given["A"],
            given["B"].T,
            scale_a=given["scale_a"],
            scale_b=given["scale_b"],
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
            out=given["C"],
        )

    return {PEER: scaled}


def checked(random: Random) -> list[tuple[int, int, int]]:
    """Whole tiles, tails of every extent, single rows."""
    fixed = [(128, 256, 128), (64, 8, 16), (1, 8, 16), (200, 264, 144), (4096, 4096, 4096)]
    drawn = [(random.randint(1, 1500), 8 * random.randint(1, 190), 16 * random.randint(1, 120)) for _ in range(12)]
    return fixed + drawn


def select(shape: tuple[int, int, int]) -> str | None:
    del shape
    return None
