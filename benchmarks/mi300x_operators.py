"""Checks operators on tensors of an MI300X against float64: the part of `mi300x.py` that needs torch for ROCm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import argus
from argus.core.diagnostic import ArgusError
from benchmarks.grouped_inputs import BLOCK, counts_of

Row = dict[str, Any]
Exact = npt.NDArray[np.float64]
CLOSE = {"bfloat16": 2.0**-7, "float16": 2.0**-9, "float32": 2.0**-16, "float8_e4m3fnuz": 2.0**-7, "int8": 2.0**-7}
"""The largest error, of results above 1 relative to them, by the operands' type; elements are normally
distributed, integers with a deviation of 40.
"""
operators: Any = argus


class Tensors(Protocol):
    """Makes tensors on the device."""

    def put(self, values: Exact, dtype: str) -> Any:  # noqa: ANN401 reason: torch's
        """A tensor of a type of torch's, such as `bfloat16`."""
        ...

    def get(self, tensor: Any) -> Exact:  # noqa: ANN401 reason: torch's
        """Its values."""
        ...


class OnTorch:
    """Tensors of the installed torch."""

    def __init__(self, torch: Any) -> None:  # noqa: ANN401 reason: torch's
        self.torch = torch

    def put(self, values: Exact, dtype: str) -> Any:  # noqa: ANN401 reason: torch's
        return self.torch.from_numpy(values).to(getattr(self.torch, dtype)).cuda()

    def get(self, tensor: Any) -> Exact:  # noqa: ANN401 reason: torch's
        return tensor.double().cpu().numpy()


def operator_rows(tensors: Tensors, *, few: bool = False) -> Iterator[Row]:
    """A row for each operator and type."""
    cases = {**_products(few), **_scaled(few), **_grouped(few), **_attention(few), **_along_rows(few)}
    cases |= {} if few else layers([(7, 3, 2, 24, 40), (300, 40, 6, 136, 200), (4096, 8, 2, 512, 1024)])
    for name, case in cases.items():
        operator, dtype = name.split(" ")[:2]
        try:
            off = max(case(tensors, dtype))
            yield {"operator": operator, "case": name, "trouble": "", "error": off, "right": off <= CLOSE[dtype]}
        except ArgusError as problem:
            yield {"operator": operator, "case": name, "trouble": str(problem).splitlines()[0], "right": False}


Case = Callable[[Tensors, str], list[float]]
"""The largest errors of the results of some calls."""


def _off(found: Exact, wanted: Exact) -> float:
    error = np.abs(found - wanted) / np.maximum(np.abs(wanted), 1)
    return float(np.max(np.where(found == wanted, 0.0, np.where(np.isnan(error), np.inf, error)), initial=0.0))


def _drawn(tensors: Tensors, dtype: str, seed: int, *shape: int) -> tuple[Any, Exact]:
    tensor = tensors.put(np.random.default_rng(seed).standard_normal(shape), dtype)
    return tensor, tensors.get(tensor)


def _products(few: bool) -> dict[str, Case]:
    shapes = [(40, 24, 72)] if few else [(1, 8, 1), (40, 24, 72), (777, 1000, 1111), (4096, 4096, 512)]

    def case(tensors: Tensors, dtype: str) -> list[float]:
        errors: list[float] = []
        for m, k, n in shapes:
            (a, left), (b, right) = _drawn(tensors, dtype, 1, m, k), _drawn(tensors, dtype, 2, n, k)
            scale = np.sqrt(k)
            errors.append(_off(tensors.get(operators.matmul(a, b.mT)) / scale, left @ right.T / scale))
        return errors

    return {"matmul bfloat16": case}


def _scaled(few: bool) -> dict[str, Case]:
    shapes = [(40, 48, 72)] if few else [(1, 16, 1), (40, 48, 72), (777, 1008, 1111), (4096, 4096, 512)]

    def case(tensors: Tensors, dtype: str) -> list[float]:
        errors: list[float] = []
        of_a, of_b = (tensors.put(np.full(1, each), "float32") for each in (0.5, 0.375))
        for m, k, n in shapes:
            (a, left), (b, right) = _drawn(tensors, dtype, 1, m, k), _drawn(tensors, dtype, 2, n, k)
            found = tensors.get(operators.scaled_matmul(a, b.mT, of_a, of_b)) / np.sqrt(k)
            errors.append(_off(found, 0.5 * 0.375 * left @ right.T / np.sqrt(k)))
        return errors

    def of_integers(tensors: Tensors, dtype: str) -> list[float]:
        errors: list[float] = []
        random = np.random.default_rng(0)
        for m, k, n in shapes:
            left, right = (np.rint(np.clip(40 * random.standard_normal((rows, k)), -128, 127)) for rows in (m, n))
            of_rows, of_columns = random.uniform(0.5, 1, (m, 1)), random.uniform(0.5, 1, (1, n))
            a, b = (tensors.put(each, dtype) for each in (left, right))
            scales = [tensors.put(each, "float32") for each in (of_rows, of_columns)]
            found, largest = tensors.get(operators.scaled_matmul(a, b.mT, *scales)), 40**2 * np.sqrt(k)
            errors.append(_off(found / largest, of_rows * of_columns * (left @ right.T) / largest))
        return errors

    def of_blocks(tensors: Tensors, dtype: str) -> list[float]:
        errors: list[float] = []
        random = np.random.default_rng(0)
        for m, k, n in shapes:
            (a, left), (b, right) = _drawn(tensors, dtype, 1, m, k), _drawn(tensors, dtype, 2, n, k)
            blocks = -(-k // BLOCK), -(-n // BLOCK)
            of_a, of_b = random.uniform(0.5, 1, (m, blocks[0])), random.uniform(0.5, 1, blocks)
            scales = [tensors.put(each, "float32") for each in (of_a, of_b)]
            found = tensors.get(operators.scaled_matmul(a, b.mT, *scales)) / np.sqrt(k)
            of_rows, of_columns = (np.repeat(each, BLOCK, 1)[:, :k] for each in (of_a, of_b.T))
            wanted = (left * of_rows) @ (right * np.repeat(of_columns, BLOCK, 0)[:n]).T
            errors.append(_off(found, wanted / np.sqrt(k)))
        return errors

    return {
        "scaled_matmul float8_e4m3fnuz": case,
        "scaled_matmul float8_e4m3fnuz blocks": of_blocks,
        "scaled_matmul int8": of_integers,
    }


def _grouped(few: bool) -> dict[str, Case]:
    shapes = (
        [(40, 3, 24, 72)] if few else [(1, 1, 8, 8), (40, 3, 24, 72), (2057, 40, 1000, 1112), (16384, 8, 512, 4096)]
    )

    def case(tensors: Tensors, dtype: str) -> list[float]:
        errors: list[float] = []
        for number, (rows, experts, depth, columns) in enumerate(shapes):
            counts = counts_of(rows, experts, np.random.default_rng(number))
            starts = np.array([0, *accumulate(counts)], np.float64)
            (a, left), (b, right) = (
                _drawn(tensors, dtype, seed, *shape)
                for seed, shape in enumerate(((rows, depth), (experts, columns, depth)))
            )
            found = tensors.get(operators.grouped_matmul(a, b.mT, tensors.put(starts, "int32")))
            parts = np.split(left, np.cumsum(counts)[:-1])
            wanted = np.concatenate([part @ right[e].T for e, part in enumerate(parts)])
            errors.append(_off(found / np.sqrt(depth), wanted / np.sqrt(depth)))
        return errors

    kinds = ("bfloat16",) if few else ("bfloat16", "float16")
    return {f"grouped_matmul {dtype}": case for dtype in kinds}


def layers(shapes: Iterable[tuple[int, int, int, int, int]]) -> dict[str, Case]:
    """Layers of experts, whose tokens `route` sends to them. shapes: tokens, experts, choices, columns and depth."""

    def case(tensors: Tensors, dtype: str) -> list[float]:
        errors: list[float] = []
        for tokens, experts, choices, columns, depth in shapes:
            logits, _ = _drawn(tensors, "float32", 3, tokens, experts)
            weights, ids = operators.route(logits, choices, renormalize=True)
            sizes = (tokens, depth), (experts, 2 * columns, depth), (experts, depth, columns)
            (x, rows), (both, first), (down, second) = (
                _drawn(tensors, dtype, seed, *shape) for seed, shape in enumerate(sizes)
            )
            found, scale = tensors.get(operators.moe(x, both, down, ids, weights)), depth * np.sqrt(columns)
            wanted, (of_token, met) = np.zeros_like(rows), (tensors.get(weights), tensors.get(ids))
            for e in range(experts):
                token, choice = np.nonzero(met == e)
                gate, up = np.split(rows[token] @ first[e].T, 2, axis=1)
                hidden = gate / (1 + np.exp(-gate)) * up
                np.add.at(wanted, token, of_token[token, choice, None] * (hidden @ second[e].T))
            errors.append(_off(found / scale, wanted / scale))
        return errors

    return {f"moe {dtype}": case for dtype in ("bfloat16", "float16")}


def _attention(few: bool) -> dict[str, Case]:
    sizes = [(1, 2, 1, 20, 37)] if few else [(1, 2, 1, 20, 37), (2, 8, 2, 300, 700)]

    def case(width: int, causal: bool) -> Case:
        def errors(tensors: Tensors, dtype: str) -> list[float]:
            found: list[float] = []
            for batch, heads, groups, rows, keys in sizes:
                shapes = (batch, heads, rows, width), *[(batch, groups, keys, width)] * 2
                (q, a), (k, b), (v, c) = (_drawn(tensors, dtype, n, *each) for n, each in enumerate(shapes))
                out, lse = operators.attention(q, k, v, causal=causal, return_lse=True)
                wanted, sums = attended(a, b, c, causal=causal)
                found += [_off(tensors.get(out), wanted), _off(tensors.get(lse), sums)]
            return found

        return errors

    widths = (64,) if few else (64, 128, 256)
    kinds = ("bfloat16",) if few else ("bfloat16", "float16")
    return {
        f"attention {dtype} d{width} {'causal' if causal else 'full'}": case(width, causal)
        for dtype in kinds
        for width in widths
        for causal in (False, True)
    }


def attended(q: Exact, k: Exact, v: Exact, *, causal: bool) -> tuple[Exact, Exact]:
    """Attention and its log-sum-exp."""
    k, v = (np.repeat(each, q.shape[1] // each.shape[1], axis=1) for each in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[3])
    if causal:
        rows, keys = q.shape[2], k.shape[2]
        scores = np.where(np.tri(rows, keys, keys - rows, bool), scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    sums = weights.sum(axis=-1, keepdims=True)
    return weights / sums @ v, (np.log(sums) + top)[..., 0]


def _normal(x: Exact) -> Exact:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def _softmax(x: Exact) -> Exact:
    made = np.exp(x - x.max(-1, keepdims=True))
    return made / made.sum(-1, keepdims=True)


def _along_rows(few: bool) -> dict[str, Case]:
    simple: dict[str, tuple[Callable[[Any], Any], Callable[[Exact], Exact]]] = {
        "softmax": (operators.softmax, _softmax),
        "log_softmax": (operators.log_softmax, lambda x: np.log(_softmax(x))),
        "rms_norm": (operators.rms_norm, lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)),
        "layer_norm": (operators.layer_norm, _normal),
        "group_norm": (
            lambda x: operators.group_norm(x, 4),
            lambda x: _normal(x.reshape(x.shape[0], 4, -1)).reshape(x.shape),
        ),
        "row_mean": (operators.row_mean, lambda x: x.mean(-1)),
        "row_sum": (operators.row_sum, lambda x: x.sum(-1)),
        "cumsum": (operators.cumsum, lambda x: np.cumsum(x, -1)),
    }
    shapes = [(3, 8, 72)] if few else [(3, 8, 72), (2, 16, 1000), (4, 4, 8192), (1, 4, 20_001)]

    def case(name: str) -> Case:
        call, reference = simple[name]

        def errors(tensors: Tensors, dtype: str) -> list[float]:
            found: list[float] = []
            for number, shape in enumerate(shapes):
                x, exact = _drawn(tensors, dtype, number, *shape)
                found.append(_off(tensors.get(call(x)), reference(exact)))
            return found

        return errors

    kinds = ("bfloat16",) if few else ("bfloat16", "float16", "float32")
    return {f"{name} {dtype}": case(name) for name in simple for dtype in kinds}
