"""The cases of `corpus_h200.py`: kernels and programs, three sizes each, inputs, and expected outputs with bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import isfinite, prod
from pathlib import Path
from typing import Any, Literal, assert_never, cast

import numpy as np
import numpy.typing as npt
from attrs import frozen

from argus.core.dsl.kernel import Template
from argus.core.dsl.programs import ProgramTemplate
from argus.core.ir import Buffer, Cast, Elem, Get, Kernel, Lit, Map, Num, Op, Program, Where, walk
from argus.core.walk import evaluate
from argus.interp.interpret import interpret, interpret_program
from argus.interp.memory.loading import inputs, outputs
from argus.interp.run import promised_integers
from argus.interp.search.search import assumed, holds, sizes_in_order
from argus.runtime import run_sizes
from argus.verifier.reference import INTERPRETED, claimed_contraction, rounding_of
from property_tests.programs import CORPUS, load

Array = npt.NDArray[Any]
Sizes = Mapping[str, int]
Draw = Literal["floats", "integers"]
DRAWS: tuple[Draw, ...] = ("floats", "integers")

FOLDERS = ("proved", "traced", "programs/proved")
TARGET = "sm_90a"
COUNT = 3
"""How many sizes of each kernel are run."""
MOST_WORK, MOST_ELEMENTS = 1 << 25, 1 << 17
"""The largest product of the sizes, and the largest number of tensor elements, of a case that is interpreted."""
EXTENTS = (1, 2, 3, 4, 8, 16, 24, 31, 32, 40, 48, 64, 72, 96, 100, 128, 136, 160, 192, 256, 264, 320, 384, 512)
"""The extents that sizes of programs are drawn from."""
EXACT_OPERATIONS = {"add", "sub", "mul", "neg", "max", "min", "abs", "relu"}
TILES = (1, 2, 128)
"""The extents that some sizes have where a solver chooses the others."""
DRAWN = 1000
"""How many sizes are considered."""
SOLVED = 40
"""How many of them are drawn in part, and completed by a solver."""


@frozen
class Subject:
    """A kernel or a program. stem: its file's name and its own."""

    stem: str
    made: Kernel | Program

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.made,) if isinstance(self.made, Kernel) else tuple(each.kernel for each in self.made.launches)

    @property
    def read(self) -> frozenset[str]:
        """The parameters whose initial contents matter."""
        if isinstance(self.made, Kernel):
            return frozenset(buffer.name for buffer in inputs(self.made))
        written, found = set[Buffer](), set[str]()
        for launch in self.made.launches:
            found |= {
                launch.arguments[b.name].name for b in inputs(launch.kernel) if launch.arguments[b.name] not in written
            }
            written |= {launch.arguments[b.name] for b in outputs(launch.kernel)}
        return frozenset(found & {buffer.name for buffer in self.made.parameters})

    def interpret(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        if isinstance(self.made, Kernel):
            return interpret(self.made, *arrays.values(), tags=False)
        return interpret_program(self.made, *arrays.values())


def subjects() -> Iterator[Subject]:
    """Every kernel and program of the corpus for sm_90a that is proved; a program's kernels are not listed again."""
    for folder in FOLDERS:
        for path in sorted((CORPUS / folder).glob("*.py")):
            yield from _of_file(path)


def _of_file(path: Path) -> Iterator[Subject]:
    values = list(cast("Mapping[str, object]", vars(load(path))).values())
    programs = [value for value in values if isinstance(value, ProgramTemplate)]
    made: list[Kernel | Program] = [each.trace(config) for each in programs for config in each.instances()]
    if not programs:
        families = [value for value in values if isinstance(value, Template)]
        made = [each.trace(config) for each in families for config in each.instances()]
    for each in made:
        subject = Subject(f"{path.stem}-{each.name}", each)
        if all(kernel.target.name == TARGET for kernel in subject.kernels):
            yield subject


# -- sizes ---------------------------------------------------------------------------------------------------


def sizes_of(subject: Subject) -> tuple[dict[str, int], ...]:
    """Up to three sizes that meet the assumptions, none of them zero where that is possible: the smallest, the largest
    affordable one, and one halfway.
    """
    found = {tuple(each.values()): each for each in _candidates(subject.made) if _affordable(subject.made, each)}
    least = max((min(values, default=1) for values in found), default=1)
    kept = [each for values, each in found.items() if min(values, default=1) >= min(1, least)]
    kept = sorted(kept, key=lambda each: (prod(each.values()), sum(each.values())))
    return tuple(kept[place] for place in sorted({0, len(kept) // 2, len(kept) - 1}) if place >= 0)


def _candidates(made: Kernel | Program) -> Iterator[dict[str, int]]:
    """Sizes that meet the assumptions: those derived from a kernel's tiles, multiples of them, and random ones."""
    random = np.random.default_rng(0)
    names = [symbol.name for symbol in made.sizes]
    drawn = [{name: int(random.choice(EXTENTS)) for name in names} for _ in range(DRAWN)]
    if isinstance(made, Kernel):
        derived = list(islice(sizes_in_order(made), DRAWN))
        yield from derived
        drawn += [{name: times * size for name, size in each.items()} for each in derived for times in (2, 3, 5)]
    yield from (each for each in drawn if meets(made, each))
    for _ in range(SOLVED):
        given = {name: int(random.choice(TILES)) for name in names if random.integers(2)}
        solved = run_sizes.sizes_of(made, given)
        if meets(made, solved):
            yield solved


def meets(made: Kernel | Program, sizes: Sizes) -> bool:
    """Whether sizes meet the assumptions of a kernel, or of every launch of a program."""
    if isinstance(made, Kernel):
        return holds(made, assumed(made), sizes)
    env = {symbol: sizes[symbol.name] for symbol in made.sizes}
    launches = (
        (each, {s.name: int(cast(int, evaluate(index, env))) for s, index in each.sizes}) for each in made.launches
    )
    return all(holds(each.kernel, assumed(each.kernel), own) for each, own in launches)


def _affordable(made: Kernel | Program, sizes: Sizes) -> bool:
    held = sum(prod(shape_of(buffer, made, sizes)) for buffer in made.parameters)
    return prod(sizes.values()) <= MOST_WORK and held <= MOST_ELEMENTS


def shape_of(buffer: Buffer, made: Kernel | Program, sizes: Sizes) -> tuple[int, ...]:
    env = {symbol: sizes[symbol.name] for symbol in made.sizes}
    return tuple(int(cast(int, evaluate(extent, env))) for extent in buffer.shape)


# -- inputs and expected outputs -----------------------------------------------------------------------------


def inputs_of(subject: Subject, sizes: Sizes, draw: Draw) -> dict[str, Array]:
    """One array per parameter, by name: normal numbers, or integers from -2 to 2, whose sums are exact."""
    random = np.random.default_rng(len(draw))
    found: dict[str, Array] = {}
    for buffer in subject.made.parameters:
        shape = shape_of(buffer, subject.made, sizes)
        drawn = random.integers(-2, 3, shape) if draw == "integers" else random.standard_normal(shape)
        if buffer.dtype.family != "float":
            drawn = random.integers(0, 8, shape)
        found[buffer.name] = drawn.astype(np.float32).astype(buffer.dtype.numpy)
    if isinstance(subject.made, Kernel):
        found |= promised_integers(subject.made, sizes, 0)
    return found


@frozen
class Expected:
    """An output's expected values, and how far each may be from what a GPU computes."""

    values: npt.NDArray[np.float32]
    bound: npt.NDArray[np.float32]
    reference: str


def expected_of(subject: Subject, arrays: Mapping[str, Array], draw: Draw) -> dict[str, Expected]:
    """By output. The reference is the kernel's claim in float64 where it determines the output, else the interpreter:
    bit for bit if the arithmetic on these inputs is exact, else within some roundings of the largest element.
    """
    claimed = claimed_contraction(subject.made) if isinstance(subject.made, Kernel) else None
    if claimed is not None:
        rows = np.arange(arrays[claimed.output.name].shape[0], dtype=np.int64)
        values, bound = claimed.exact(arrays, rows)
        bound = bound + rounding_of(np.dtype(np.float32)) * np.abs(values)  # of the values as they are stored
        return {claimed.output.name: Expected(values.astype(np.float32), bound.astype(np.float32), "claim in float64")}
    exact = draw == "integers" and all(map(_exact, subject.kernels))
    found: dict[str, Expected] = {}
    for name, array in subject.interpret(arrays).items():
        values = array.astype(np.float32)
        largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
        bound = 0.0 if exact else INTERPRETED * rounding_of(array.dtype) * largest
        found[name] = Expected(values, np.full(values.shape, bound, np.float32), "interpreter")
    return found


def _exact(kernel: Kernel) -> bool:
    """Whether sums of small integers are all that the kernel computes."""
    return all(_exact_element(stmt.elem) for stmt in walk(kernel.body) if isinstance(stmt, Map))


def _exact_element(elem: Elem) -> bool:
    match elem:
        case Lit(value=value):
            return not isfinite(value) or value.is_integer()
        case Num() | Get():
            return True
        case Op(name=name, args=args):
            return name in EXACT_OPERATIONS and all(map(_exact_element, args))
        case Cast(arg=arg):
            return _exact_element(arg)
        case Where(then=then, other=other):
            return _exact_element(then) and _exact_element(other)
        case _:
            assert_never(elem)
