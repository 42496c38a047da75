"""Batched GEMM, C[z] = A[z] @ B[z]^T, in one launch, by the schedules of `gemm`.

A kernel's name gives the layouts of A and B, as in `argus.kernels.layouts`. `shared`: one A for all products. A shared
B needs no batch: stack all A[z] as the rows of one matrix.
"""

from __future__ import annotations

from argus.kernels import layouts
from argus.kernels.gemm import Config, multiply
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.split import Split
from argus.language import Tensor, bf16, f16, kernel

NT_CONFIGS, NN_CONFIGS, TT_CONFIGS, TN_CONFIGS = (
    {name: config for name, config in configs.items() if not isinstance(config, Split)}
    for configs in (layouts.NT_CONFIGS, layouts.NN_CONFIGS, layouts.TT_CONFIGS, layouts.TN_CONFIGS)
)


@kernel(configs=NT_CONFIGS)
def bmm_nt(A: Tensor["Z M K", bf16], B: Tensor["Z N K", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=NN_CONFIGS)
def bmm_nn(A: Tensor["Z M K", bf16], B: Tensor["Z K N", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.mT, C), cfg)


@kernel(configs=TN_CONFIGS)
def bmm_tn(A: Tensor["Z K M", bf16], B: Tensor["Z K N", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.mT, B.mT, C), cfg)


@kernel(configs=TT_CONFIGS)
def bmm_tt(A: Tensor["Z K M", bf16], B: Tensor["Z N K", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.mT, B, C), cfg)


@kernel(configs=NT_CONFIGS)
def bmm_nt_shared(A: Tensor["M K", bf16], B: Tensor["Z N K", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=NN_CONFIGS)
def bmm_nn_shared(A: Tensor["M K", bf16], B: Tensor["Z K N", bf16], C: Tensor["Z M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.mT, C), cfg)


@kernel(configs=NT_CONFIGS)
def bmm_nt_f16(A: Tensor["Z M K", f16], B: Tensor["Z N K", f16], C: Tensor["Z M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=NN_CONFIGS)
def bmm_nn_f16(A: Tensor["Z M K", f16], B: Tensor["Z K N", f16], C: Tensor["Z M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.mT, C), cfg)


@kernel(configs=TN_CONFIGS)
def bmm_tn_f16(A: Tensor["Z K M", f16], B: Tensor["Z K N", f16], C: Tensor["Z M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A.mT, B.mT, C), cfg)


@kernel(configs=TT_CONFIGS)
def bmm_tt_f16(A: Tensor["Z K M", f16], B: Tensor["Z N K", f16], C: Tensor["Z M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A.mT, B, C), cfg)


@kernel(configs=NT_CONFIGS)
def bmm_nt_shared_f16(A: Tensor["M K", f16], B: Tensor["Z N K", f16], C: Tensor["Z M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=NN_CONFIGS)
def bmm_nn_shared_f16(A: Tensor["M K", f16], B: Tensor["Z K N", f16], C: Tensor["Z M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.mT, C), cfg)
