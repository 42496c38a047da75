"""The shared definition of the families with fused epilogues vs. torch, eager and compiled.

What the families of one epilogue (`epilogues_bias`, `_silu`, `_scaled`, `_residual`, `_gated`) share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from typing import Any

from families import gemm
from families.gemm import Shape

PEER = "torch"
SHAPES: tuple[Shape, ...] = ((4096, 14336, 4096), (4096, 4096, 4096), (8192, 8192, 8192))
Given = Mapping[str, Any]


class Epilogue:
    """A family. kernel: its module and name. more: parameters besides A, B and C.

    result: of float64 tensors. eager: the same by torch, of bf16 ones.
    """

    def __init__(
        self,
        kernel: tuple[str, str],
        more: Callable[[Any, Shape], dict[str, Any]],
        result: Callable[[Any, Given], Any],
        eager: Callable[[Any, Given], Any],
    ) -> None:
        self._kernel, self._more, self._result, self._eager = kernel, more, result, eager

    def variants(self) -> Mapping[str, Callable[[], Any]]:
        template = getattr(import_module(f"argus.kernels.{self._kernel[0]}"), self._kernel[1])
        known = [name for name, config in template.configs.items() if config.target.name == "sm_90a"]
        return {name: lambda n=name: template.trace(n) for name in known}

    def sizes(self, shape: Shape) -> dict[str, int]:
        return gemm.sizes(shape)

    def tensors(self, torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
        return gemm.tensors(torch, shape) | self._more(torch, shape)

    def exact(self, torch: Any, given: Given) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
        """The result in float64, and the scale of errors: the element's magnitude plus twice the mean magnitude."""
        result = self._result(torch, {name: each.double() for name, each in given.items()})
        return result, result.abs() + 2 * result.abs().mean()

    def peers(self, torch: Any, given: Given) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
        def eager() -> Any:  # noqa: ANN401 reason: untyped
            return self._eager(torch, given)

        compiled = torch.compile(eager, mode="max-autotune-no-cudagraphs")
        try:
            compiled()
        except Exception as problem:  # noqa: BLE001 reason: a machine without its compiler still has the other peer
            print(f"torch.compile does not work here: {type(problem).__name__}: {str(problem)[:200]}")
            return {PEER: eager}
        return {PEER: eager, "torch.compile": compiled}

    def checked(self, random: Random) -> list[Shape]:
        return gemm.checked(random)

    def select(self, shape: Shape) -> str | None:
        del shape
        return None


def normal(torch: Any, rows: int, columns: int) -> Any:  # noqa: ANN401 reason: untyped
    return torch.randn(rows, columns, device="cuda").bfloat16()
