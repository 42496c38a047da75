"""bf16 GEMM with bias and GELU vs. cuBLAS and torch, eager and compiled: C = gelu(A @ B^T + bias)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families import gemm
from families.gemm import Shape, sizes

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

SHAPES: tuple[Shape, ...] = ((4096, 14336, 4096), (4096, 4096, 4096), (8192, 8192, 8192))
OUTPUT, PEER = "C", "torch"


def variants() -> Mapping[str, Callable[[], Any]]:
    from argus.kernels.fused import CONFIGS, gemm_bias_gelu  # noqa: PLC0415 reason: the GPU's machine has no solver

    return {name: lambda n=name: gemm_bias_gelu.trace(n) for name in CONFIGS if CONFIGS[name].target.name == "sm_90a"}


def tensors(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    return gemm.tensors(torch, shape) | {"bias": torch.randn(shape[1], device="cuda")}


def exact(torch: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    result = given["A"].double() @ given["B"].double().T + given["bias"].double()
    return torch.nn.functional.gelu(result, approximate="tanh"), result.abs() + given["A"].shape[1] ** 0.5


def peers(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    """torch eager in two calls (bias in the product), in three calls, and torch.compile of the two."""
    a, b = given["A"], given["B"]
    bias = given["bias"].bfloat16()

    def eager() -> Any:  # noqa: ANN401 reason: untyped
        return torch.nn.functional.gelu(torch.nn.functional.linear(a, b, bias), approximate="tanh")

    def plain() -> Any:  # noqa: ANN401 reason: untyped
        return torch.nn.functional.gelu(torch.mm(a, b.T) + bias, approximate="tanh")

    compiled = torch.compile(eager)
    try:
        compiled()
    except Exception as problem:  # noqa: BLE001 reason: a machine without its compiler still has the other peer
        print(f"torch.compile does not work here: {type(problem).__name__}: {str(problem)[:200]}")
        return {PEER: eager, "cuBLAS + torch": plain}
    return {PEER: eager, "cuBLAS + torch": plain, "torch.compile": compiled}


def checked(random: Random) -> list[Shape]:
    return gemm.checked(random)


def select(shape: Shape) -> str | None:
    from argus.ops.choice import select_fused as chosen  # noqa: PLC0415 reason: as above

    return chosen(*shape)
