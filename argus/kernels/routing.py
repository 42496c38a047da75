"""Weights of the experts that tokens are routed to, by softmax or sigmoid, for scores in bf16, f16 and f32."""

# Without `from __future__ import annotations`: those that name a type are evaluated where they stand.

from itertools import product
from math import gcd

from argus.kernels.config_names import name_of
from argus.kernels.schedules.routing import EXPERTS, MOST, Routed, RoutedCdna3, Routing, Scoring
from argus.language import DType, Template, Tensor, bf16, f16, f32, i32, kernel

_THREADS, _HELD, _LANES = 128, 16, (8, 16, 32)
"""Threads of a block; the most scores of a thread; threads of a token."""
_PER_THREAD = 8
"""Scores of a thread where more threads could share a token."""


def _shape(experts: int) -> tuple[int, int]:
    """The threads of a token with so many scores, and the scores of each, both powers of two."""
    lanes = next((each for each in _LANES if each * _PER_THREAD >= experts), _LANES[-1])
    return lanes, max(1, 1 << (-(-experts // lanes) - 1).bit_length())


def _config(experts: int, bits: int, kind: type[Routed] | type[RoutedCdna3]) -> Routed | RoutedCdna3:
    lanes, held = _shape(experts)
    vector = gcd(experts, 128 // bits, held)
    threads = _THREADS * (2 if kind is RoutedCdna3 else 1)
    return kind(threads, threads // lanes, vector, held // vector)


def _configs(bits: int) -> dict[str, Routed | RoutedCdna3]:
    kinds = product((Routed, RoutedCdna3), range(1, EXPERTS + 1))
    return {name_of(each): each for each in (_config(experts, bits, kind) for kind, experts in kinds)}


_BITS = {str(each): each.bits for each in (bf16, f16, f32)}
CONFIGS = {name: _configs(bits) for name, bits in _BITS.items()}
"""The configurations by type and name."""


def choose(kind: str, experts: int) -> str:
    """The configuration on Hopper for so many experts, of scores of a type."""
    return name_of(_config(experts, _BITS[kind], Routed))


def choose_cdna3(kind: str, experts: int) -> str:
    """The same on MI300X."""
    return name_of(_config(experts, _BITS[kind], RoutedCdna3))


def family(dtype: str, scoring: Scoring, *, renormalised: bool, biased: bool, grouped: bool = False) -> str:
    """The name of a kernel. grouped: it is given the experts that each token may choose."""
    return f"route_{scoring}{'_renormalised' * renormalised}{'_biased' * biased}{'_grouped' * grouped}_{dtype}"


def _plain(dtype: DType, scoring: Scoring, renormalised: bool) -> Template:
    @kernel(configs=CONFIGS[str(dtype)], name=family(str(dtype), scoring, renormalised=renormalised, biased=False))
    def made(
        X: Tensor["T E", dtype], ids: Tensor["T K", i32], F: Tensor["1", f32], W: Tensor["T K", f32], *, cfg: Routed
    ) -> None:
        Routing(X, ids, F, W, scoring, renormalised).weigh(cfg)

    return made


def _biased(dtype: DType, renormalised: bool) -> Template:
    @kernel(configs=CONFIGS[str(dtype)], name=family(str(dtype), "sigmoid", renormalised=renormalised, biased=True))
    def made(
        X: Tensor["T E", dtype],
        B: Tensor["E", f32],
        ids: Tensor["T K", i32],
        F: Tensor["1", f32],
        W: Tensor["T K", f32],
        *,
        cfg: Routed,
    ) -> None:
        Routing(X, ids, F, W, "sigmoid", renormalised, B).weigh(cfg)

    return made


def _grouped(dtype: DType, scoring: Scoring, renormalised: bool) -> Template:
    name = family(str(dtype), scoring, renormalised=renormalised, biased=False, grouped=True)

    @kernel(configs=CONFIGS[str(dtype)], name=name)
    def made(
        X: Tensor["T E", dtype],
        M: Tensor["T E", f32],
        ids: Tensor["T K", i32],
        F: Tensor["1", f32],
        W: Tensor["T K", f32],
        *,
        cfg: Routed,
    ) -> None:
        Routing(X, ids, F, W, scoring, renormalised, M=M).weigh(cfg)

    return made


def _grouped_biased(dtype: DType, renormalised: bool) -> Template:
    name = family(str(dtype), "sigmoid", renormalised=renormalised, biased=True, grouped=True)

    @kernel(configs=CONFIGS[str(dtype)], name=name)
    def made(
        X: Tensor["T E", dtype],
        B: Tensor["E", f32],
        M: Tensor["T E", f32],
        ids: Tensor["T K", i32],
        F: Tensor["1", f32],
        W: Tensor["T K", f32],
        *,
        cfg: Routed,
    ) -> None:
        Routing(X, ids, F, W, "sigmoid", renormalised, B, M).weigh(cfg)

    return made


_TYPES, _EITHER = (bf16, f16, f32), (False, True)
_SCORINGS: tuple[Scoring, ...] = ("softmax", "sigmoid")
FAMILIES = {
    each.name: each
    for each in (
        *(_plain(*given) for given in product(_TYPES, _SCORINGS, _EITHER)),
        *(_biased(*given) for given in product(_TYPES, _EITHER)),
        *(_grouped(*given) for given in product(_TYPES, _SCORINGS, _EITHER)),
        *(_grouped_biased(*given) for given in product(_TYPES, _EITHER)),
    )
}
"""The kernels by name."""
__all__ = ["CONFIGS", "FAMILIES", "MOST", "choose", "choose_cdna3", "family"]
