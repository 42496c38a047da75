"""The shared definition of the families by operand layout vs. torch.mm: C = op(A) op(B) of 16-bit elements.

Used by `layouts_nn`, `layouts_tn`, `layouts_tt` and `layouts_f16`. As in BLAS, for row-major matrices: `n` plain, `t`
transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from typing import Any

from families.gemm import Shape

PEER = "torch.mm"
SHAPES: tuple[Shape, ...] = (
    *((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (16384, 8192, 1024)),
    *((4096, 14336, 4096), (128, 8192, 8192), (512, 7168, 2048)),
)
_CHECKED = 8


class Layout:
    """A family. kernel: its name in `argus.kernels.layouts`. kind: the name of torch's type."""

    def __init__(self, kernel: str, *, a_transposed: bool, b_transposed: bool, kind: str = "bfloat16") -> None:
        self._kernel, self._kind = kernel, kind
        self._a, self._b = a_transposed, b_transposed

    def variants(self) -> Mapping[str, Callable[[], Any]]:
        template = getattr(import_module("argus.kernels.layouts"), self._kernel)
        return {name: lambda n=name: template.trace(n) for name in template.instances()}

    def sizes(self, shape: Shape) -> dict[str, int]:
        return dict(zip("MNK", shape, strict=True))

    def tensors(self, torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
        m, n, k = shape
        kind = getattr(torch, self._kind)

        def normal(*extents: int) -> Any:  # noqa: ANN401 reason: untyped
            return torch.randn(*extents, device="cuda").to(kind)

        a = normal(k, m) if self._a else normal(m, k)
        b = normal(k, n) if self._b else normal(n, k)
        return {"A": a, "B": b, "C": torch.empty(m, n, device="cuda", dtype=kind)}

    def _factors(self, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """(M, K) and (K, N)."""
        a, b = given["A"], given["B"]
        return a.T if self._a else a, b if self._b else b.T

    def exact(self, torch: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
        """The product in float64, and the scale of errors: the element's magnitude plus the square root of K."""
        del torch
        a, b = self._factors(given)
        result = a.double() @ b.double()
        return result, result.abs() + a.shape[1] ** 0.5

    def peers(self, torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
        (a, b), c = self._factors(given), given["C"]
        return {PEER: lambda: torch.mm(a, b, out=c)}

    def checked(self, random: Random) -> list[Shape]:
        """Whole tiles, partial tiles in every dimension, and extents not divisible by 8 where no row has them."""
        shapes = [(128, 256, 64), (64, 8, 8), (8, 8, 8), (200, 264, 136), (4096, 4096, 4096)]
        for _ in range(_CHECKED):
            m, n, k = random.randint(1, 190), 8 * random.randint(1, 190), random.randint(1, 190)
            shapes.append((8 * m if self._a else m, n, k if self._a and self._b else 8 * k))
        return shapes

    def select(self, shape: Shape) -> str | None:
        chosen = import_module("argus.kernels.layouts").select
        return chosen(*shape, a_transposed=self._a, b_transposed=self._b)
