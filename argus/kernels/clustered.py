"""C = A @ B^T on Hopper by pairs of blocks: each fetches half of the tile of B that both multiply by."""

from __future__ import annotations

from argus.kernels.contraction import Contraction
from argus.kernels.hopper import Hopper, hopper_cooperative, identity
from argus.language import Tensor, bf16, kernel


@kernel(configs={"clustered": Hopper(cluster=(2, 1))})
def gemm(A: Tensor["M K", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Hopper) -> None:
    """The schedule of `hopper_cooperative`, in clusters of two by one."""
    problem = Contraction(A, B, C)
    hopper_cooperative(problem, cfg, identity)
    problem.finish()
