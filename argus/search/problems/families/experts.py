"""`moe:TxKxN:experts=E:topk=J[:bf16|f16][:silu|gelu][:routing=random|zipf|onehot]`: a layer of experts.

T tokens of K elements, N elements between the products of an expert. The designs are programs of three or four launches
on both targets: rows in the order of their experts, the gated product, the second product, and the sums of tokens.
"""

# ruff: noqa: N803
# Reason: references have parameters named as tensors of kernels.

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from math import ceil, log, log2
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core.cost.machine import MACHINES
from argus.core.ir import Program
from argus.core.target import TARGETS
from argus.kernels.config_names import name_of
from argus.kernels.moe import CONFIGS, FAMILIES, Experts
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.grouped import Grouped
from argus.kernels.schedules.grouped_few import GroupedFew
from argus.kernels.schedules.grouped_gated import ACTIVATIONS, Activation
from argus.kernels.schedules.grouped_gathered import GatheredFew
from argus.kernels.schedules.moe_rows import RowSums
from argus.ops import lists_on_cpu
from argus.ops.grouped_tiles import count_of
from argus.ops.targets import KERNELS
from argus.policy.bounds import Work
from argus.search.problems.families.space import FamilyDesign, FamilySpace, Knobs, knobs_of, refuse
from argus.search.problems.input_rules import InputRules, Sizes

FORM = "moe:TxKxN:experts=E:topk=J, then any of :bf16, :f16, :silu, :gelu and :routing=random, zipf or onehot"
ROUTINGS = ("random", "zipf", "onehot")
_NAME = re.compile(r"moe:([1-9]\d{0,7})x([1-9]\d{0,6})x([1-9]\d{0,6})((?::[\w=]+)*)")
_TYPES = ("bf16", "f16")
_MOST_EXPERTS = 512
_CHUNK = 8
"""Elements in 16 bytes, of which rows are multiples."""
_ELEMENT = 2
_FAR = 2.0
_STAGED = 200 << 10
"""Bytes of a block for stages."""
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


@frozen
class LayerShape:
    """tokens of k elements; each goes to `topk` of the experts, which have n elements between their products."""

    tokens: int
    k: int
    n: int
    experts: int
    topk: int
    dtype: str = "bf16"
    activation: Activation = "silu"
    routing: str = ROUTINGS[0]

    @property
    def name(self) -> str:
        parts = [f"moe:{self.tokens}x{self.k}x{self.n}:experts={self.experts}:topk={self.topk}", self.dtype]
        parts += [self.activation] if self.activation != "silu" else []
        parts += [f"routing={self.routing}"] if self.routing != ROUTINGS[0] else []
        return ":".join(parts)

    @property
    def ids(self) -> Array:
        """The experts of each token, (tokens, topk): always the same, so that the work is known."""
        return routed(self.tokens, self.experts, self.topk, self.routing, np.random.default_rng(0))

    @property
    def rows(self) -> int:
        return self.tokens * self.topk

    @property
    def sizes(self) -> dict[str, int]:
        """Of all designs; those of the list of tiles depend on their height."""
        return {
            "T": self.tokens,
            "K": self.k,
            "E": self.experts,
            "N": self.n,
            "J": self.topk,
            "S": self.experts + 1,
            "R": self.rows,
        }

    @property
    def work(self) -> Work:
        flops = 6.0 * self.rows * self.k * self.n
        used = len(np.unique(self.ids))
        read = _ELEMENT * (self.tokens * self.k + 3 * used * self.k * self.n) + 8 * self.rows
        return Work.of({self.dtype: flops}, read, _ELEMENT * self.tokens * self.k)

    @property
    def place(self) -> tuple[float, ...]:
        """Logarithms of the sizes; another routing is as far as sizes of four times."""
        sizes = (self.rows, self.k, self.n, self.experts)
        return (*map(log2, sizes), *(_FAR * (self.routing == each) / 2 for each in ROUTINGS))


def shape_of_name(text: str) -> LayerShape:
    """Raises ArgusError (E903) for another name."""
    found = _NAME.fullmatch(text)
    if found is None:
        refuse(f"`{text}` is no layer of experts, expected {FORM}", "for example moe:4096x2048x1408:experts=64:topk=6")
    given: dict[str, Any] = {}
    for option in filter(None, found[4].split(":")):
        name, _, value = option.partition("=")
        if option in _TYPES:
            given["dtype"] = option
        elif option in ACTIVATIONS:
            given["activation"] = option
        elif name in ("experts", "topk") and value.isdigit() and int(value):
            given[name] = int(value)
        elif name == "routing" and value in ROUTINGS:
            given[name] = value
        else:
            refuse(f"`{option}` is no option of a layer of experts", f"expected {FORM}")
    if not {"experts", "topk"} <= given.keys():
        refuse(f"`{text}` has no numbers of experts and of choices", "add :experts=64:topk=6")
    shape = LayerShape(int(found[1]), int(found[2]), int(found[3]), **given)
    if shape.topk > shape.experts or shape.experts > _MOST_EXPERTS:
        refuse(
            f"{shape.topk} of {shape.experts} experts for a token",
            f"name at most {_MOST_EXPERTS} experts, and no more choices than those",
        )
    if shape.k % _CHUNK or shape.n % _CHUNK:
        refuse(f"rows of {shape.k} and {shape.n} elements", f"name multiples of {_CHUNK}, which are 16 bytes")
    return shape


# -- routing -------------------------------------------------------------------------------------------------


def routed(tokens: int, experts: int, topk: int, routing: str, generator: np.random.Generator) -> Array:
    """`topk` different experts of each token, (tokens, topk).

    random: all experts alike. zipf: expert e, in some order, by weight 1 / (e + 1). onehot: the same for all tokens.
    """
    order = generator.permutation(experts)
    if routing == "onehot":
        return np.tile(order[:topk], (tokens, 1)).astype(np.int32)
    weights = np.zeros(experts) if routing == "random" else -np.log(np.arange(1, experts + 1))
    scores = weights + generator.gumbel(size=(tokens, experts))
    return order[np.argsort(-scores, axis=1, kind="stable")[:, :topk]].astype(np.int32)


def lists_of(ids: Array, experts: int, height: int) -> dict[str, Array]:
    """All integers of a program, by name. height: the most rows of a tile."""
    starts, _, tokens, inverse = lists_on_cpu.expert_order(ids, experts, ids.shape[1])
    firsts, owners = lists_on_cpu.tiles(starts, count_of(ids.size, experts, height), height)
    found = {"ids": ids, "starts": starts, "tokens": tokens, "inverse": inverse.reshape(ids.shape)}
    found |= {"tile_starts": firsts, "tile_experts": owners}
    return {name: each.astype(np.int32) for name, each in found.items()}


def tile_sizes(rows: int, experts: int, height: int) -> dict[str, int]:
    """The sizes of the list of tiles."""
    tiles = count_of(rows, experts, height)
    return {"P": tiles, "Q": tiles + 1}


def _integers(
    shape: LayerShape, height: int, sizes: Sizes, kind: str, generator: np.random.Generator
) -> dict[str, Array]:
    """At the problem's own sizes always its routing, else one of a kind."""
    own = all(sizes[name] == extent for name, extent in shape.sizes.items())
    ids = shape.ids if own else routed(sizes["T"], sizes["E"], sizes["J"], kind, generator)
    return lists_of(ids, sizes["E"], height)


def _small(height: int, generator: np.random.Generator) -> Iterator[Sizes]:
    """Few tokens, and sometimes more rows than a tile has."""
    while True:
        experts = int(generator.integers(1, 5))
        topk = int(generator.integers(1, min(3, experts) + 1))
        tokens, k, n = (int(generator.integers(1, most)) for most in (24, 4, 4))
        shape = LayerShape(tokens, _CHUNK * k, _CHUNK * n, experts, topk)
        yield {**shape.sizes, **tile_sizes(shape.rows, experts, height)}


# -- designs -------------------------------------------------------------------------------------------------


def configs(target: str) -> Iterator[Experts]:
    """The shipped configurations of a target, then others around them: heights by stages by widths of tiles."""
    seen: set[Experts] = set()
    shipped = [each for each in CONFIGS.values() if each.first.target.name == target]
    for each in (*shipped, *(_hopper() if target == "sm_90a" else _cdna3(shipped))):
        if each not in seen:
            seen.add(each)
            yield each


def _hopper() -> Iterator[Experts]:
    for bn, stages, group in product((64, 128, 256), (3, 4, 6), (0, 8)):
        tiles = Grouped(bn=bn, stages=stages, group=group)
        if 2 * (tiles.bm + 2 * bn) * tiles.bk * stages <= _STAGED:
            yield Experts(tiles, tiles)
    for bm, stages in product((16, 32, 64), (4, 6, 8)):
        for bk, wide in product((64, 128), (64, 128)):
            first, second = GroupedFew(bm, 64, stages), GroupedFew(bm, bk, stages, wide)
            gathered = GatheredFew(bm, 64, stages)
            if max(_few_bytes(bm, 64, 128, stages), _few_bytes(bm, bk, wide, stages)) <= _STAGED:
                yield Experts(first, second)
                yield Experts(gathered, second)
    for at_once, threads in product((4, 8), (64, 128, 256)):
        yield evolve(CONFIGS["gathered_16"], sums=RowSums(threads, at_once=at_once))


def _few_bytes(bm: int, bk: int, columns: int, stages: int) -> int:
    return 2 * (bm + columns) * bk * stages


def _cdna3(shipped: list[Experts]) -> Iterator[Experts]:
    """Each shipped configuration with the copies and sums of fewer or more threads."""
    for each, threads in product(shipped, (64, 128, 256)):
        yield evolve(each, sums=evolve(each.sums, threads=threads))
        yield evolve(each, copies=evolve(each.copies, threads=threads))


def design_name(config: Experts) -> str:
    """Shipped ones have their names."""
    known = next((name for name, each in CONFIGS.items() if each == config), None)
    parts = [config.first, *([config.second] if config.second != config.first else [])]
    parts += [each for each in (config.copies, config.sums) if each != type(each)()]
    return f"moe_{known}" if known else "moe_" + "_".join(map(name_of, parts))


def knobs_of_all(config: Experts) -> Knobs:
    """Those of each launch, under its name; the first is the kind of the products."""
    kind = f"{type(config.first).__name__} {type(config.second).__name__}"
    parts = {"first": config.first, "second": config.second, "copies": config.copies, "sums": config.sums}
    own = ((f"{part} {name}", value) for part, of in parts.items() for name, value in knobs_of(of)[1:])
    return (("kind", kind), ("height", config.bm), *own)


def trace(shape: LayerShape, config: Experts, name: str) -> Program:
    """The program of a design, under its name."""
    return evolve(FAMILIES[shape.dtype, shape.activation].instance(config, name), name=name)


def space(text: str, target: str) -> tuple[str, FamilySpace]:
    """The full name of a problem, and its space. Raises ArgusError (E903)."""
    shape = shape_of_name(text)
    if target not in [each.name for each in TARGETS]:
        refuse(f"there is no target `{target}`", "name it with --target")
    designs: dict[str, FamilyDesign] = {}
    for each in configs(target):
        name = design_name(each)
        rules = InputRules(
            small=partial(_small, each.bm), kinds=_kinds(shape), integers=partial(_integers, shape, each.bm)
        )
        designs[name] = FamilyDesign(
            name,
            knobs_of_all(each),
            partial(trace, shape, each, name),
            features(shape, each, target),
            each,
            tile_sizes(shape.rows, shape.experts, each.bm),
            rules,
        )
    usual = f"moe_{KERNELS['moe'][target].choose(shape.rows, shape.experts, blocks=False)}"
    return shape.name, FamilySpace(
        shape.sizes,
        designs,
        partial(layer, activation=shape.activation),
        shape.work,
        usual,
        "chosen by `argus.moe` without a search",
        f"{target}.moe",
        log2(shape.rows / shape.experts),
        shape.place,
        designs[usual].inputs or InputRules(),
        told=f"activation = {shape.activation!r}\n{inspect.getsource(layer)}\n{inspect.getsource(activated)}",
    )


def _kinds(shape: LayerShape) -> tuple[str, ...]:
    """All kinds of routing, the problem's first."""
    return (shape.routing, *(each for each in ROUTINGS if each != shape.routing))


def features(shape: LayerShape, config: Experts, target: str) -> Mapping[str, float]:
    """How a configuration fits a layer. Unit: natural logarithms of utilisations, at most 0, and shares."""
    counts = np.bincount(shape.ids.ravel(), minlength=shape.experts)
    tiles = int(np.ceil(counts / config.bm).sum())
    processors = MACHINES[target].target.processors
    wide = config.first.bn if isinstance(config.first, Grouped | GroupedFew | Cdna3Interleaved) else 64
    blocks = tiles * ceil(shape.n / wide)
    return {
        "rows of tiles": log(shape.rows / (tiles * config.bm)),
        "empty tiles": tiles / count_of(shape.rows, shape.experts, config.bm),
        "last wave": log(blocks / (ceil(blocks / processors) * processors)),
        "columns of tiles": log(shape.n / (wide * ceil(shape.n / wide))),
        "gathers": float(isinstance(config.first, GatheredFew)),
        "rows of an expert by height": log2(shape.rows / shape.experts / config.bm) / 8,
    }


# -- float64 -------------------------------------------------------------------------------------------------


def layer(X: Floats, W: Floats, V: Floats, ids: Floats, weights: Floats, *, activation: Activation) -> Floats:
    """For each token the sum over its experts e, by weight, of V[e] (activation(W[e, 0] x) * (W[e, 1] x)), in float64.

    X: (tokens, k). W: (experts, 2, n, k). V: (experts, k, n). ids, weights: (tokens, choices).
    """
    made = np.zeros_like(X)
    for expert in np.unique(ids).astype(int):
        tokens, choices = np.nonzero(ids == expert)
        gate, up = (X[tokens] @ W[expert, part].T for part in (0, 1))
        results = (activated(gate, activation) * up) @ V[expert].T
        np.add.at(made, tokens, weights[tokens, choices][:, None] * results)
    return made


def activated(x: Floats, activation: Activation) -> Floats:
    """silu, or gelu in its tanh form."""
    if activation == "silu":
        return x / (1 + np.exp(-x))
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
