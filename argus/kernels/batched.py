"""C[z] = A[z] @ B[z]^T: many products of one shape in one launch, by the schedules of `gemm`.

A name says how A and B lie, as in `argus.kernels.layouts`. `shared` has one A for all products; one B for all is no
batch: the rows of all A are those of one matrix.
"""

from __future__ import annotations

from argus.kernels.contraction import Contraction
from argus.kernels.gemm import Config, multiply
from argus.kernels.layouts import SHIPPED, TURNED
from argus.language import Tensor, bf16, kernel


@kernel(configs=SHIPPED)
def bmm_nt(A: Tensor["Z M K", bf16], B: Tensor["Z N K", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=TURNED)
def bmm_nn(A: Tensor["Z M K", bf16], B: Tensor["Z K N", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.mT, C), cfg)


@kernel(configs=TURNED)
def bmm_tn(A: Tensor["Z K M", bf16], B: Tensor["Z K N", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.mT, B.mT, C), cfg)


@kernel(configs=SHIPPED)
def bmm_tt(A: Tensor["Z K M", bf16], B: Tensor["Z N K", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.mT, B, C), cfg)


@kernel(configs=SHIPPED)
def bmm_nt_shared(A: Tensor["M K", bf16], B: Tensor["Z N K", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=TURNED)
def bmm_nn_shared(A: Tensor["M K", bf16], B: Tensor["Z K N", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.mT, C), cfg)
