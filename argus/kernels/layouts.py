"""C = A @ B^T with either operand turned, and of f16: one claim and the schedules of `gemm`, no copy of an operand.

A name says how A and B lie, as libraries name C = op(A) op(B) of row-major matrices: `n` an operand as it is in the
product, `t` its transpose, so that `gemm` itself is the `nt` of bf16. Elements of 16 bits alone: the matrix unit takes
others with neighbours along K only [PTX ISA, wgmma].
"""

from __future__ import annotations

from argus.kernels.cost_sm_90a import is_exchanged
from argus.kernels.gemm import CONFIGS, Config, multiply
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.contraction import Contraction
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.split import Split
from argus.language import Tensor, bf16, f16, kernel

_SPAN = 64
"""Elements of 16 bits in 128 bytes, in which turned tiles are fetched."""
SHIPPED: dict[str, Config] = {
    name: config for name, config in CONFIGS.items() if not isinstance(config, Cdna3 | Cdna3PingPong)
}
TURNED = {name: each for name, each in SHIPPED.items() if not isinstance(each, Hopper) or each.bn % _SPAN == 0}
"""For a turned B. Of three spans of columns two blocks cannot have half each: neighbouring columns share A."""
TURNED["columns_192"] = Hopper(bn=192, cluster=(1, 2), whole=True)


def _in_spans(configs: dict[str, Config]) -> dict[str, Config]:
    """Those whose tiles of a turned A are whole spans, or one that is shorter."""
    return {name: each for name, each in configs.items() if _SPAN % _rows(each) == 0 or _rows(each) % _SPAN == 0}


def _rows(config: Config) -> int:
    """Of A, in a tile."""
    if isinstance(config, Narrow):
        return _SPAN
    return config.bn if isinstance(config, Split) and config.swap_ab else config.bm


ACROSS, BOTH = _in_spans(SHIPPED), _in_spans(TURNED)
"""For a turned A, and for both turned."""


@kernel(configs=TURNED)
def gemm_nn(A: Tensor["M K", bf16], B: Tensor["K N", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.T, C), cfg)


@kernel(configs=BOTH)
def gemm_tn(A: Tensor["K M", bf16], B: Tensor["K N", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B.T, C), cfg)


@kernel(configs=ACROSS)
def gemm_tt(A: Tensor["K M", bf16], B: Tensor["N K", bf16], C: Tensor["M N", bf16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B, C), cfg)


@kernel(configs=SHIPPED)
def gemm_nt_f16(A: Tensor["M K", f16], B: Tensor["N K", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B, C), cfg)


@kernel(configs=TURNED)
def gemm_nn_f16(A: Tensor["M K", f16], B: Tensor["K N", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A, B.T, C), cfg)


@kernel(configs=BOTH)
def gemm_tn_f16(A: Tensor["K M", f16], B: Tensor["K N", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B.T, C), cfg)


@kernel(configs=ACROSS)
def gemm_tt_f16(A: Tensor["K M", f16], B: Tensor["N K", f16], C: Tensor["M N", f16], *, cfg: Config) -> None:
    multiply(Contraction(A.T, B, C), cfg)


def offered(m: int, n: int, k: int, *, a_turned: bool, b_turned: bool) -> dict[str, Config]:
    """The configurations that take operands of these extents that lie so."""
    known = (BOTH if b_turned else ACROSS) if a_turned else TURNED if b_turned else SHIPPED
    lengths = (m if a_turned else k, n if b_turned else k)
    if any(length % 8 for length in lengths):
        return {"narrow": known["narrow"]}
    if n % 8:
        return {name: each for name, each in known.items() if is_exchanged(each)}
    return known
