"""`attention:BxHxSxD[:bf16|f16][:causal][:groups=G][:keys=T]`: attention forward on Hopper."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import product
from math import ceil, log, log2
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core.cost.machine import MACHINES
from argus.kernels.attention import CONFIGS, FAMILIES, choose
from argus.kernels.config_names import name_of
from argus.kernels.schedules.attention_hopper import REGISTERS, AttentionHopper, balance
from argus.language import DType, bf16, f16
from argus.policy.bounds import Work
from argus.search.problems.families.space import FamilyDesign, FamilySpace, knobs_of, refuse
from argus.search.problems.input_rules import InputRules

FORM = "attention:BxHxSxD, then any of :f16, :causal, :groups=G and :keys=T"
_NAME = re.compile(r"attention:([1-9]\d{0,5})x([1-9]\d{0,4})x([1-9]\d{0,8})x([1-9]\d{0,3})((?::[\w=]+)*)")
_TYPES: Mapping[str, DType] = {"bf16": bf16, "f16": f16}
_SHARED = MACHINES["sm_90a"].shared - MACHINES["sm_90a"].reserved - 2048
"""Bytes of a block for tiles: barriers and the alignment of tiles take some."""
_ROWS, _BOX, _ELEMENT = 64, 64, 2
_WARPGROUP = 128
_FAR = 3.0
_PER_ROW = 4
"""Registers of a thread for what its rows carry: maxima and sums."""
_KEYS: Mapping[int, tuple[int, ...]] = {64: (32, 64, 128, 256), 128: (32, 64, 128), 256: (32, 64)}
"""Keys of a block that are tried, by head dimension; of numbers that are no powers of 2, little is proved."""
_ORDERS_WITH_MORE = (32, 64)
"""Heads at a time with which further techniques are combined."""
Array = npt.NDArray[np.float64]


@frozen
class AttentionShape:
    """b sequences of h heads, each of s queries and t keys of d elements; h / g heads share keys and values."""

    b: int
    h: int
    g: int
    s: int
    t: int
    d: int
    dtype: str
    causal: bool

    @property
    def name(self) -> str:
        parts = [f"attention:{self.b}x{self.h}x{self.s}x{self.d}", self.dtype]
        parts += ["causal"] if self.causal else []
        parts += [f"groups={self.g}"] if self.g != self.h else []
        parts += [f"keys={self.t}"] if self.t != self.s else []
        return ":".join(parts)

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key that it sees, of one head; the last query sees all keys."""
        if not self.causal:
            return self.s * self.t
        return sum_of_seen(self.s, self.t)

    @property
    def place(self) -> tuple[float, ...]:
        """Logarithms of the sizes; another head dimension or mask is as far as sizes of eight times."""
        kinds = _FAR * log2(self.d), _FAR * self.causal
        return (log2(self.b * self.h), log2(self.s), log2(self.t), *kinds)

    @property
    def work(self) -> Work:
        queries, keys = self.b * self.h * self.s * self.d, self.b * self.g * self.t * self.d
        flops = 4.0 * self.b * self.h * self.pairs * self.d
        writes = _ELEMENT * queries + 4 * self.b * self.h * self.s
        return Work.of({self.dtype: flops}, _ELEMENT * (queries + 2 * keys), writes)


def sum_of_seen(queries: int, keys: int) -> int:
    """Pairs of a query and a key that it sees, where query i sees keys up to i + keys - queries."""
    first = keys - queries + 1
    hidden = max(0, -first + 1)
    count = queries - hidden
    return count * (2 * max(first, 1) + count - 1) // 2


def shape_of_name(text: str) -> AttentionShape:
    """Raises ArgusError (E903) for another name."""
    found = _NAME.fullmatch(text)
    if found is None:
        refuse(f"`{text}` is no attention problem, expected {FORM}", "for example attention:4x16x4096x128:bf16:causal")
    b, h, s, d = map(int, found.groups()[:4])
    given: dict[str, Any] = {"dtype": "bf16", "causal": False, "groups": h, "keys": s}
    for option in filter(None, found[5].split(":")):
        name, _, value = option.partition("=")
        if option in _TYPES:
            given["dtype"] = option
        elif option == "causal":
            given["causal"] = True
        elif name in ("groups", "keys") and value.isdigit() and int(value):
            given[name] = int(value)
        else:
            refuse(f"`{option}` is no option of an attention problem", f"expected {FORM}")
    if d not in CONFIGS:
        refuse(
            f"heads have {d} elements, expected one of {', '.join(map(str, CONFIGS))}", "name another head dimension"
        )
    if h % given["groups"]:
        refuse(f"{h} heads are no multiple of {given['groups']} groups", "name a number that divides the heads")
    return AttentionShape(b, h, given["groups"], s, given["keys"], d, given["dtype"], given["causal"])


def configs(shape: AttentionShape) -> Iterator[AttentionHopper]:
    """The configurations that can take the shape and whose tiles fit in shared memory, shipped ones first."""
    shipped = [each for each in CONFIGS[shape.d].values() if each.causal == shape.causal]
    seen: set[AttentionHopper] = set()
    for each in (*shipped, *_around(shape)):
        masked = not shape.causal or shape.s <= shape.t or each.masked_rows
        if each not in seen and masked and fits(each, shape.d):
            seen.add(each)
            yield each


def _around(shape: AttentionShape) -> Iterator[AttentionHopper]:
    """Schedules from a plain one to the shipped ones: tiles by stages by order, then each technique off and on."""
    skips = shape.causal and shape.s <= shape.t
    orders = ((0, False), (4, False), (32, False), (64, True)) if shape.causal else ((32, False),)
    boxes = (1, 2) if shape.d > _BOX else (1,)
    tiles = product(_KEYS[shape.d], (2, 3), (1, 2))
    for (bn, warpgroups, stages), (heads, zigzag) in product(tiles, orders):
        plain = AttentionHopper(
            bn=bn,
            causal=shape.causal,
            heads=heads,
            zigzag=zigzag,
            boxes=0,
            skip_mask=skips or not shape.causal,
            warpgroups=warpgroups,
            stages=stages,
        )
        yield plain
        if heads in _ORDERS_WITH_MORE:
            for stored, together, ahead in product(boxes, (False, True), (0, 1)):
                yield evolve(plain, boxes=stored, together=together, tiles_ahead=ahead)


def fits(config: AttentionHopper, width: int) -> bool:
    """Whether tiles fit in shared memory, and those of a warpgroup in the registers that it requests."""
    tiles = config.bn // 2 + config.bn // 4 + width // 2 + _PER_ROW
    return shared_bytes(config, width) <= _SHARED and tiles <= REGISTERS[config.warpgroups][1]


def shared_bytes(config: AttentionHopper, width: int) -> int:
    """Bytes of tiles in shared memory: queries, keys and values, and boxes of the output."""
    queries = (1 + config.tiles_ahead) * config.bm * width
    blocks = 2 * config.stages * config.bn * width
    boxes = config.warpgroups * min(config.boxes, width // _BOX) * _ROWS * _BOX
    return _ELEMENT * (queries + blocks + boxes)


def space(text: str, target: str) -> tuple[str, FamilySpace]:
    """The full name of a problem, and its space. Raises ArgusError (E903)."""
    shape = shape_of_name(text)
    if target != "sm_90a":
        refuse(f"attention is searched for sm_90a, found {target}", "name it with --target sm_90a")
    template = FAMILIES[_TYPES[shape.dtype]][shape.d]
    designs: dict[str, FamilyDesign] = {}
    usual = CONFIGS[shape.d][choose(shape.d, shape.s, shape.t, shape.b * shape.h, causal=shape.causal)]
    for each in configs(shape):
        name = name_of(each)
        designs[name] = FamilyDesign(
            name, knobs_of(each), partial(template.instance, each, name), features(shape, each), each
        )
    sizes = {"B": shape.b, "H": shape.h, "G": shape.g, "S": shape.s, "T": shape.t}
    reference = partial(attention, causal=shape.causal)
    return shape.name, FamilySpace(
        sizes,
        designs,
        reference,
        shape.work,
        name_of(usual),
        "chosen by `argus.attention` without a search",
        "sm_90a.attention",
        log2(shape.b * shape.h * ceil(shape.s / _WARPGROUP) / MACHINES["sm_90a"].target.processors),
        shape.place,
        InputRules({"scale": shape.d**-0.5 / log(2)}),
        told=inspect.getsource(attention),
    )


def features(shape: AttentionShape, config: AttentionHopper) -> dict[str, float]:
    """How a configuration fits a shape. Unit: natural logarithms of utilisations, at most 0, and shares."""
    tiles, pairs = ceil(shape.s / config.bm), shape.b * shape.h
    processors = MACHINES["sm_90a"].target.processors
    keys = ceil(shape.t / config.bn) * config.bn
    return {
        "evenness": log(_evenness(config.warpgroups, config.causal, max(1, config.heads), config.zigzag, tiles, pairs)),
        "edge": log(shape.s * shape.t / (tiles * config.bm * keys)),
        "one round": float(tiles * pairs <= processors),
        "shared memory": shared_bytes(config, shape.d) / _SHARED,
        "keys by warpgroups": log2(config.bn / 64) * (config.warpgroups - 2),
    }


@lru_cache(maxsize=1 << 10)
def _evenness(warpgroups: int, causal: bool, heads: int, zigzag: bool, tiles: int, pairs: int) -> float:
    """The balance of the work of tiles, of which what decides it alone is told."""
    told = AttentionHopper(warpgroups=warpgroups, causal=causal, heads=heads, zigzag=zigzag)
    return balance(told, tiles, pairs)


def attention(  # the names are the kernel's
    Q: Array,  # noqa: N803 reason: as above
    K: Array,  # noqa: N803 reason: as above
    V: Array,  # noqa: N803 reason: as above
    scale: Array,
    *,
    causal: bool,
) -> dict[str, Array]:
    """For each head V summed by weights 2^(scale Q K^T), over their sum, and the natural logarithm of that, in float64.

    scale: log2(e) times the factor of the scores.
    """
    repeated = Q.shape[1] // K.shape[1] if K.shape[1] else 1
    keys, values = (np.repeat(each, repeated, axis=1) for each in (K, V))
    scores = log(2) * float(scale[0]) * (Q @ keys.swapaxes(-1, -2))
    if causal:
        queries, count = Q.shape[2], K.shape[2]
        scores = np.where(np.tri(queries, count, count - queries, dtype=np.bool_), scores, -np.inf)
    top = scores.max(-1, initial=-np.inf, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    sums = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return {"O": weights @ values / np.where(sums, sums, 1.0), "LSE": (top + np.log(sums))[..., 0]}
