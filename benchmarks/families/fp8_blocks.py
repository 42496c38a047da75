"""FP8 GEMM with scales of 1 x 128 of A and 128 x 128 of B vs. torch's scaled products: C = A @ B^T, e4m3.

Beside DeepGEMM too, at shapes for which `benchmarks/peers/deep_gemm.py` has built it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from families import fp8
from families.gemm import Shape
from peers import deep_gemm_calls
from peers.deep_gemm import E4M3, Product

__all__ = ["OUTPUT", "PEER", "SHAPES", "checked", "exact", "peers", "select", "sizes", "tensors", "variants"]

SHAPES: tuple[Shape, ...] = fp8.SHAPES
OUTPUT, PEER = "C", "scaled_mm"
_BLOCK = 128
_SAMPLED = 64
_CHOSEN: list[str] = []
"""The torch call that is the peer, once determined."""


def variants() -> Mapping[str, Callable[[], Any]]:
    from argus.kernels.fp8_blocks import CONFIGS, gemm_fp8_blocks  # noqa: PLC0415 reason: no solver there

    return {name: lambda n=name: gemm_fp8_blocks.trace(n) for name in CONFIGS}


def sizes(shape: Shape) -> dict[str, int]:
    m, n, k = shape
    return {"M": m, "N": n, "K": k, "KB": -(-k // _BLOCK), "NB": -(-n // _BLOCK)}


def tensors(torch: Any, shape: Shape) -> dict[str, Any]:  # noqa: ANN401 reason: untyped
    m, _, _ = shape
    held, given = sizes(shape), fp8.tensors(torch, shape)
    scales = {
        "scale_a": torch.rand(held["KB"], m, device="cuda") + 0.5,
        "scale_b": torch.rand(held["NB"], held["KB"], device="cuda") + 0.5,
    }
    return given | scales


def exact(torch: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:  # noqa: ANN401 reason: untyped
    del torch
    a, b = _scaled(given)
    result = a @ b.T
    return result, result.abs() + (a.abs() @ b.abs().T) / 16


def _scaled(given: Mapping[str, Any]) -> tuple[Any, Any]:
    """Both matrices in float64, multiplied by their scales."""
    n, k = given["B"].shape
    of_a = given["scale_a"].double().T.repeat_interleave(_BLOCK, 1)[:, :k]
    of_b = given["scale_b"].double().repeat_interleave(_BLOCK, 0)[:n].repeat_interleave(_BLOCK, 1)[:, :k]
    return given["A"].double() * of_a, given["B"].double() * of_b


def peers(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    """torch's product with the same scales, if it has a correct one; and the one with a scale per matrix, which does
    less work and replaces the other if that is missing.
    """
    one = torch.ones(1, device="cuda")
    single = fp8.peers(torch, {**given, "scale_a": one, "scale_b": one})[fp8.PEER]
    deep_gemm = _deep_gemm(torch, given)
    calls = _of_blocks(torch, given)
    if not _CHOSEN:
        _CHOSEN.append(next((name for name, call in calls.items() if _serves(name, given, call)), ""))
        print(f"the peer is torch's {_CHOSEN[0] or 'scaled_mm with one scale per matrix'}")
    if not _CHOSEN[0]:
        return {PEER: single} | deep_gemm
    return {PEER: calls[_CHOSEN[0]], "scaled_mm of one scale": single} | deep_gemm


def _deep_gemm(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], object]]:  # noqa: ANN401 reason: untyped
    """DeepGEMM's product, if it is built for this shape, and right.

    Raises:
        ValueError: it computes another product.
    """
    (m, k), (n, _) = given["A"].shape, given["B"].shape
    kernel = deep_gemm_calls.load_if_built(Product(E4M3, m, n, k))
    if kernel is None:
        return {}
    call = deep_gemm_calls.call(kernel, torch, given["A"], given["B"], (given["scale_a"], given["scale_b"]))
    if not _is_right(given, call()):
        raise ValueError("DeepGEMM computes another product")
    return {"DeepGEMM": call}


def _serves(name: str, given: Mapping[str, Any], call: Callable[[], Any]) -> bool:
    try:
        fine = _is_right(given, call())
    except Exception as problem:  # noqa: BLE001 reason: which of them there is depends on torch and on the card
        print(f"torch's {name}: {type(problem).__name__}: {str(problem)[:160]}")
        return False
    if not fine:
        print(f"torch's {name} computes another product")
    return fine


def _of_blocks(torch: Any, given: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:  # noqa: ANN401 reason: untyped
    a, b = given["A"], given["B"].T
    of_a, of_b = given["scale_a"].T, given["scale_b"]
    found: dict[str, Callable[[], Any]] = {}
    kinds, product = getattr(torch.nn.functional, "ScalingType", None), getattr(torch.nn.functional, "scaled_mm", None)
    if kinds is not None and product is not None:
        recipes = kinds.BlockWise1x128, kinds.BlockWise128x128
        for order, scale in (("", of_b.T), (", column-major", of_b)):
            found[f"functional.scaled_mm{order}"] = lambda s=scale: product(
                a, b, of_a, recipes[0], s, recipes[1], output_dtype=torch.bfloat16, use_fast_accum=False
            )
    for order, scale in (("", of_b.T), (", column-major", of_b.T.contiguous())):
        for fast in (False, True):
            found[f"_scaled_mm{order}{', fast' if fast else ''}"] = lambda s=scale, f=fast: torch._scaled_mm(
                a, b, of_a, s, out_dtype=torch.bfloat16, use_fast_accum=f
            )
    return found


def _is_right(given: Mapping[str, Any], found: Any) -> bool:  # noqa: ANN401 reason: untyped
    """Whether the first rows of a result are correct."""
    few = {**given, "A": given["A"][:_SAMPLED], "scale_a": given["scale_a"][:, :_SAMPLED]}
    wanted, share = exact(None, few)
    return bool(((found[:_SAMPLED].double() - wanted).abs() / share).max().item() < 2.0**-6)


def checked(random: Random) -> list[Shape]:
    """The shapes of `fp8`, and some whose rows of scales are multiples of 16 bytes."""
    shapes = [(128, 256, 512), (4, 8, 400), (300, 264, 912), (1000, 520, 1024), (2048, 1024, 7168)]
    return (
        fp8.checked(random)
        + shapes
        + [(4 * random.randint(1, 300), 8 * random.randint(1, 190), 512 * random.randint(1, 8)) for _ in range(4)]
    )


def select(shape: Shape) -> str | None:
    from argus.ops.choice import select_fp8_blocks as chosen  # noqa: PLC0415 reason: as above

    return chosen(*shape)
