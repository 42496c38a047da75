"""`rows:OPERATION:RxN[:bf16|f16|f32]`: softmax, sums, cumulative sums and norms of R rows of N elements on Hopper."""

# ruff: noqa: N803
# Reason: references have parameters named as tensors of kernels.

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from math import ceil, log, log2

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from argus.core.cost.machine import MACHINES
from argus.kernels.config_names import name_of
from argus.kernels.rows import norms, scans, softmax, sums
from argus.kernels.rows.configs import CONFIGS, SIZES, Reads, choose
from argus.kernels.schedules.rows import WARP, Rows
from argus.language import DType, Template, bf16, f16, f32
from argus.policy.bounds import Work
from argus.search.problems.families.space import FamilyDesign, FamilySpace, knobs_of, refuse
from argus.search.problems.input_rules import InputRules

FORM = "rows:OPERATION:RxN or rows:OPERATION:RxN:TYPE"
_NAME = re.compile(r"rows:(\w+):([1-9]\d{0,8})x([1-9]\d{0,8})(?::(\w+))?")
_TYPES: Mapping[str, DType] = {"bf16": bf16, "f16": f16, "f32": f32}
_THREADS = 1024
_REGISTERS = 64
"""Elements of a thread, held in registers, above which a row spills."""
_EPSILON = 1e-5
_FAR = 2.0
Array = npt.NDArray[np.float64]


@frozen
class Operation:
    """made: the template of a type. reads: how rows are read. reference: in float64. weights: tensors of N elements.

    along: whether the result has all elements of the rows, or one number a row.
    """

    made: Callable[[DType], Template]
    reads: Reads
    reference: Callable[..., Array]
    weights: int = 0
    along: bool = True


def _softmax(X: Array) -> Array:
    weights = np.exp(X - X.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def _log_softmax(X: Array) -> Array:
    below = X - X.max(1, keepdims=True)
    return below - np.log(np.exp(below).sum(1, keepdims=True))


def _row_sum(X: Array) -> Array:
    return X.sum(1)


def _row_mean(X: Array) -> Array:
    return X.mean(1)


def _cumsum(X: Array) -> Array:
    return np.cumsum(X, 1)


def _rms_norm(X: Array, G: Array, eps: Array) -> Array:
    return X / np.sqrt((X * X).mean(1, keepdims=True) + eps[0]) * G


def _layer_norm(X: Array, G: Array, B: Array, eps: Array) -> Array:
    return (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + eps[0]) * G + B


OPERATIONS: Mapping[str, Operation] = {
    "softmax": Operation(softmax.softmax, "twice", _softmax),
    "log_softmax": Operation(softmax.log_softmax, "twice", _log_softmax),
    "row_sum": Operation(sums.row_sum, "summed", _row_sum, along=False),
    "row_mean": Operation(sums.row_mean, "summed", _row_mean, along=False),
    "cumsum": Operation(scans.cumsum, "in order", _cumsum),
    "rms_norm": Operation(norms.rms_norm, "squared", _rms_norm, 1),
    "layer_norm": Operation(norms.layer_norm, "thrice", _layer_norm, 2),
}


@frozen
class RowShape:
    """rows of `length` elements of a type."""

    operation: str
    rows: int
    length: int
    dtype: str

    @property
    def name(self) -> str:
        return f"rows:{self.operation}:{self.rows}x{self.length}:{self.dtype}"

    @property
    def place(self) -> tuple[float, ...]:
        """Logarithms of the sizes; another operation or type is as far as sizes of four times."""
        kinds = (_FAR * (each == self.operation) / 2 for each in OPERATIONS)
        return log2(self.rows), log2(self.length), _FAR * log2(SIZES[self.dtype]), *kinds

    @property
    def work(self) -> Work:
        of, size = OPERATIONS[self.operation], SIZES[self.dtype]
        elements = self.rows * self.length
        written = elements if of.along else self.rows
        return Work.of({}, size * (elements + of.weights * self.length), size * written)


def shape_of_name(text: str) -> RowShape:
    """Raises ArgusError (E903) for another name."""
    found = _NAME.fullmatch(text)
    if found is None:
        refuse(f"`{text}` is no problem of rows, expected {FORM}", "for example rows:softmax:8192x4096:bf16")
    dtype = found[4] or "bf16"
    if found[1] not in OPERATIONS:
        refuse(f"`{found[1]}` is no operation on rows", f"expected one of {', '.join(OPERATIONS)}")
    if dtype not in _TYPES:
        refuse(f"`{dtype}` is no element type of rows", f"expected one of {', '.join(_TYPES)}")
    return RowShape(found[1], int(found[2]), int(found[3]), dtype)


def configs(shape: RowShape) -> Iterator[Rows]:
    """The configurations that can take rows of this number and length, shipped ones first."""
    of = OPERATIONS[shape.operation]
    shipped = [each for each in CONFIGS[shape.dtype].values() if of.reads != "in order" or each.threads < _THREADS]
    if of.reads != "twice":
        shipped = [each for each in shipped if not each.staged and (each.held or not each.whole)]
    own = _usual(shape)
    seen: set[Rows] = set()
    for each in (own, *shipped, *_around(shape)):
        if each not in seen and admits(each, shape):
            seen.add(each)
            yield each


def _usual(shape: RowShape) -> Rows:
    chosen = choose(shape.dtype, shape.length, None, OPERATIONS[shape.operation].reads, shape.rows)
    return CONFIGS[shape.dtype][chosen]


def admits(config: Rows, shape: RowShape) -> bool:
    """Whether a configuration takes the rows: accesses divide them, registers or blocks hold them."""
    if shape.length % config.vector or (config.whole and not config.are_whole(shape.rows, shape.length)):
        return False
    return not config.held or shape.length <= config.longest


def _around(shape: RowShape) -> Iterator[Rows]:
    """Threads by rows of a block by accesses by steps, with rows in registers or read in chunks."""
    of = OPERATIONS[shape.operation]
    most = _THREADS if of.reads != "in order" else _THREADS // 2
    wide = 16 // SIZES[shape.dtype]
    vectors = [wide >> halved for halved in range(wide.bit_length())]
    threads = [each for each in (64, 128, 256, 512, 1024) if each <= most]
    for count, vector, steps in product(threads, vectors, (1, 2, 4, 8)):
        if vector * steps > _REGISTERS:
            continue
        for lanes in (4, 8, 16, WARP, count):
            made = Rows(count, count // lanes, vector, steps)
            if made.width < 8 * shape.length:  # otherwise most lanes of a row are idle
                yield made
            if lanes == count and of.reads != "in order":
                yield evolve(made, held=False)


def space(text: str, target: str) -> tuple[str, FamilySpace]:
    """The full name of a problem, and its space. Raises ArgusError (E903)."""
    shape = shape_of_name(text)
    if target != "sm_90a":
        refuse(f"problems of rows are searched for sm_90a, found {target}", "name it with --target sm_90a")
    of = OPERATIONS[shape.operation]
    template = of.made(_TYPES[shape.dtype])
    designs: dict[str, FamilyDesign] = {}
    for each in configs(shape):
        name = name_of(each)
        designs[name] = FamilyDesign(
            name, knobs_of(each), partial(template.instance, each, name), features(shape, each), each
        )
    return shape.name, FamilySpace(
        {"R": shape.rows, "N": shape.length},
        designs,
        of.reference,
        shape.work,
        name_of(_usual(shape)),
        f"chosen by `argus.{shape.operation}` without a search",
        "sm_90a.rows",
        log2(shape.length),
        shape.place,
        InputRules({"eps": _EPSILON} if of.weights else {}),
        told=inspect.getsource(of.reference),
    )


def features(shape: RowShape, config: Rows) -> dict[str, float]:
    """How a configuration fits rows. Unit: natural logarithms of utilisations, at most 0; others scaled to about 1."""
    machine = MACHINES["sm_90a"]
    parts = ceil(shape.length / config.longest)
    blocks = ceil(shape.rows / config.rows) * config.blocks
    registers = config.vector * config.steps * (1 if config.held and not config.staged else 0) + 32
    resident = max(1, min(machine.registers // (registers * config.threads), 2048 // config.threads, machine.blocks))
    waves = ceil(blocks / (resident * machine.target.processors))
    bytes_in_flight = resident * config.threads * config.vector * config.steps * SIZES[shape.dtype]
    flight = log2(bytes_in_flight / 32768) / 4
    return {
        "edge": log(shape.length / (parts * config.longest)),
        "passes": float(not config.held and parts > 1),
        "last round": log(blocks / (waves * resident * machine.target.processors)),
        "bytes in flight": flight,
        "bytes in flight squared": flight**2,
        "lanes": log2(config.lanes) / 10,
        "elements of a thread": log2(config.vector * config.steps) / 6,
        "bytes of an access": log2(config.vector * SIZES[shape.dtype]) / 4,
    }
