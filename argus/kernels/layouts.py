"""GEMM with row-major and column-major operands (NT, NN, TN, TT), in bf16 and f16, without copies of operands.

A kernel's name gives the layouts as in BLAS, C = op(A) op(B) of row-major matrices: `n` plain, `t` transposed; `gemm`
itself is the `nt` of bf16. Only for elements of 16 bits: for others wgmma takes K-major operands only [PTX ISA, wgmma].
On MI300X `Cdna3Interleaved` alone reads column-major operands.
"""

from __future__ import annotations

from collections.abc import Mapping

from argus.kernels.cost_sm_90a import stores_elements
from argus.kernels.gemm import CONFIGS, Config, multiply
from argus.kernels.row_alignment import admits_rows
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged
from argus.language import Tensor, bf16, f16, kernel

_SPAN = 64
"""16-bit elements in 128 bytes, the box width of MN-major tiles."""
ROWS_ALONE = Cdna3 | Cdna3PingPong | Cdna3Staged | Staged
"""Schedules of `gemm` alone: of row-major operands in bf16."""
NT_CONFIGS: dict[str, Config] = {name: config for name, config in CONFIGS.items() if not isinstance(config, ROWS_ALONE)}
NN_CONFIGS = {name: each for name, each in NT_CONFIGS.items() if not isinstance(each, Hopper) or each.bn % _SPAN == 0}
"""Configurations for an N-major B: bn must be whole spans."""
NN_CONFIGS["columns_192"] = Hopper(bn=192, cluster=(1, 2), whole=True)


def _in_spans(configs: dict[str, Config]) -> dict[str, Config]:
    """The configurations whose tiles of an M-major A are whole spans, or a fraction of one."""
    return {name: each for name, each in configs.items() if _SPAN % _rows(each) == 0 or _rows(each) % _SPAN == 0}


def _rows(config: Config) -> int:
    """Rows of A in a tile."""
    if isinstance(config, Narrow):
        return _SPAN
    return config.bn if isinstance(config, Split) and config.swap_ab else config.bm


TT_CONFIGS, TN_CONFIGS = _in_spans(NT_CONFIGS), _in_spans(NN_CONFIGS)
"""Configurations for an M-major A, and for an M-major A with an N-major B."""


@kernel(configs=NN_CONFIGS)
def gemm_nn(A: Tensor["M K", bf16], B: Tensor["K N", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.T, C), cfg)


@kernel(configs=TN_CONFIGS)
def gemm_tn(A: Tensor["K M", bf16], B: Tensor["K N", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B.T, C), cfg)


@kernel(configs=TT_CONFIGS)
def gemm_tt(A: Tensor["K M", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B, C), cfg)


@kernel(configs=NT_CONFIGS)
def gemm_nt_f16(A: Tensor["M K", f16], B: Tensor["N K", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=NN_CONFIGS)
def gemm_nn_f16(A: Tensor["M K", f16], B: Tensor["K N", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.T, C), cfg)


@kernel(configs=TN_CONFIGS)
def gemm_tn_f16(A: Tensor["K M", f16], B: Tensor["K N", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B.T, C), cfg)


@kernel(configs=TT_CONFIGS)
def gemm_tt_f16(A: Tensor["K M", f16], B: Tensor["N K", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B, C), cfg)


def configs_of(*, a_transposed: bool, b_transposed: bool) -> Mapping[str, Config]:
    """The configurations that support operands of these layouts."""
    return (TN_CONFIGS if b_transposed else TT_CONFIGS) if a_transposed else NN_CONFIGS if b_transposed else NT_CONFIGS


def configs_for(
    m: int, n: int, k: int, *, a_transposed: bool, b_transposed: bool, target: str = "sm_90a"
) -> dict[str, Config]:
    """The configurations for a target that support operands of these extents and layouts."""
    all_ = configs_of(a_transposed=a_transposed, b_transposed=b_transposed)
    known = {name: each for name, each in all_.items() if each.target.name == target}
    lengths = (m if a_transposed else k, n if b_transposed else k)
    if target == "gfx942":
        rows = [{"M": m, "N": n, "K": length} for length in lengths]
        return {name: each for name, each in known.items() if all(admits_rows(each, sizes) for sizes in rows)}
    if any(length % 8 for length in lengths):
        return {name: each for name, each in known.items() if isinstance(each, Narrow)}
    if n % 8:
        return {name: each for name, each in known.items() if stores_elements(each)}
    return known
