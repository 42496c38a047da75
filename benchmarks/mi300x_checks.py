"""Checks shipped gfx942 kernels on a GPU against float64: the part of `mi300x.py` that needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import asdict, frozen

from argus.core.diagnostic import ArgusError
from argus.core.dtype import DTYPES
from argus.core.ir import Kernel, Program
from argus.runtime.cpu.validate import chosen_sizes
from argus.runtime.gpu.device import Device, Memory
from argus.runtime.gpu.guards import Promises
from argus.runtime.gpu.launch import LoadedKernel, load
from argus.runtime.kernel_cache import build_cached, build_program_cached, verify_cached, verify_program_cached
from argus.runtime.programs import LoadedProgram, load_program
from argus.runtime.run import inputs_of, tensors_read, tensors_written
from argus.runtime.run_references import compare_run
from argus.runtime.sandbox.user_reference import Oracle
from argus.verifier.loader import load as load_file
from argus.verifier.reference import Comparison
from benchmarks.corpus_cases import meets
from benchmarks.grouped_inputs import grouped_inputs
from benchmarks.grouped_inputs import sizes_of as grouped_sizes
from benchmarks.shipped import CARD_BATCHES, CARD_SIZES, families, near

Row = dict[str, Any]
Array = npt.NDArray[Any]
Sizes = Mapping[str, int]
ZONE = 4096
"""Bytes before and behind each tensor that must stay as they are."""
_MARK, _POISON = 0xA5, 0xFF
"""What zones hold, and what outputs hold before a launch: NaN in every float type that has one."""
_BYTES = {dtype.name: dtype.bits // 8 for dtype in DTYPES}
_LENGTHS = (40_000, 4096, 1000, 512, 128, 72, 24, 8, 1)
"""Lengths of rows, of which a kernel takes the first that its assumptions allow."""
_MOST = 1 << 21
"""Elements of many rows: references are computed on the CPU."""


@frozen
class Zoned:
    """A tensor on the device between guard zones. whole: all of that memory."""

    tensor: Memory
    whole: Memory

    @classmethod
    def of(cls, device: Device, shape: tuple[int, ...], size: int) -> Zoned:
        whole = device.allocate((2 * ZONE + prod(shape) * size,), 1)
        whole.fill(_MARK)
        tensor = Memory(device.driver, whole.pointer + ZONE, shape, size)
        tensor.fill(_POISON)
        return cls(tensor, whole)

    def contents(self, like: Array) -> Array:
        """What the tensor holds, as an array of another's shape and type."""
        return self.tensor.read().view(like.dtype).reshape(like.shape)

    @property
    def untouched(self) -> bool:
        """Whether both zones are as they were."""
        held = self.whole.read()
        return bool(np.all(held[:ZONE] == _MARK) and np.all(held[-ZONE:] == _MARK))


_GROUPED = ((1, 1, 8, 16), (150, 3, 72, 48), (2057, 40, 1032, 528), (9000, 8, 2056, 1296))
"""Rows, experts, columns and depth of grouped products."""


def sizes_to_check(made: Kernel | Program, *, few: bool, height: int = 0) -> tuple[dict[str, int], ...]:
    """Sizes with tails, up to more tiles than a GPU has processors. few: only small ones, to execute on a CPU.

    height: of the tiles of a grouped product.
    """
    names = {symbol.name for symbol in made.sizes}
    if {"E", "T"} <= names:
        every = (grouped_sizes(*each, height) for each in (_GROUPED[1:2] if few else _GROUPED))
        return tuple({name: each[name] for name in each if name in names} for each in every)
    if {"M", "N", "K"} <= names:
        wanted = [dict(zip("MNK", each, strict=True)) for each in ((1, 1, 1), (40, 72, 48), *CARD_SIZES[1:])]
        if "Z" in names:
            wanted = [
                dict(zip("ZMNK", each, strict=True)) for each in ((1, 1, 1, 1), (2, 40, 72, 48), *CARD_BATCHES[1:])
            ]
        return tuple(near(made, each) for each in (wanted[1:2] if few else wanted))
    if {"B", "H", "S", "G", "T"} <= names:
        every = ((1, 2, 20, 1, 37), (2, 4, 150, 2, 300), (1, 3, 1, 3, 1), (40, 8, 20, 4, 70))
        found = [dict(zip("BHSGT", each, strict=True)) for each in every]
        return tuple(each for each in found if meets(made, each))[: 1 if few else None]
    if {"R", "N"} <= names:
        return tuple(_rows(made, most) for most in ((1,) if few else (1, _MOST)))
    assert isinstance(made, Kernel), f"no sizes for {made.name}"
    return tuple(chosen_sizes(made)[: 1 if few else 3])


def _rows(made: Kernel | Program, most: int) -> dict[str, int]:
    """The longest rows of `_LENGTHS` that a kernel takes, six or so many that they have that many elements; of groups,
    two groups of channels of 8 elements.
    """
    for length in _LENGTHS:
        sizes = {
            "R": max(6, most // length // 2 * 2),
            "N": length,
            "G": 2,
            "K": max(1, length // 8),
            "S": min(8, length),
        }
        found = {symbol.name: sizes[symbol.name] for symbol in made.sizes}
        if meets(made, found):
            return found
    message = f"`{made.name}` takes no rows of {_LENGTHS}"
    raise ValueError(message)


def kernel_rows(device: Device, family: str, configs: Sequence[str], *, few: bool = False) -> Iterator[Row]:
    """A row for each configuration of a family and each of its sizes; one that fails says why in `trouble`."""
    template = dict(families())[family]
    for config in configs:
        made = template.trace(config)
        about: Row = {"kernel": f"{family}-{config}", "trouble": ""}
        try:
            whole = isinstance(made, Program)
            about["verdict"] = (
                verify_program_cached(made) if isinstance(made, Program) else verify_cached(made)
            ).verdict
            description = build_program_cached(made) if isinstance(made, Program) else build_cached(made)
            loaded = (load_program if whole else load)(description, device.driver)
            height = getattr(template.configs[config], "bm", 0)
            for sizes in sizes_to_check(made, few=few, height=height):
                found = about | checked(device, made, loaded, sizes, inputs_for(made, sizes, height))
                yield found | {"right": found["right"] and about["verdict"] == "proved"}
        except ArgusError as problem:
            yield about | {"trouble": str(problem).splitlines()[0], "right": False}


def product_of(made: Program) -> Oracle | None:
    """What a program of products of A and B computes, which claims no formula; None for other programs."""
    of = {each.name: each.shape for each in made.parameters}
    if of.keys() != {"A", "B", "C"}:
        return None
    a_transposed, b_transposed = of["A"][-1] is of["C"][-2], of["B"][-1] is of["C"][-1]

    def product(A: Array, B: Array) -> Array:
        left = A.swapaxes(-1, -2) if a_transposed else A
        return left @ (B if b_transposed else B.swapaxes(-1, -2))

    return product


def inputs_for(made: Kernel | Program, sizes: Sizes, height: int) -> dict[str, Array]:
    """Random inputs; of grouped products, tiles of at most so many rows."""
    if isinstance(made, Kernel) and "tile_starts" in {each.name for each in made.parameters}:
        return grouped_inputs(made, sizes, height, seed=0)
    return inputs_of(made, sizes, seed=0)


def checked(
    device: Device,
    made: Kernel | Program,
    loaded: LoadedKernel | LoadedProgram,
    sizes: Sizes,
    arrays: dict[str, Array],
) -> Row:
    """One launch on inputs, its outputs against float64, and the zones around all tensors."""
    if "scale" in arrays:  # of attention: with a random one, exponentials leave no bound on rounding
        arrays["scale"][:] = 1 / (log(2) * sqrt(arrays["Q"].shape[-1]))
    read, written = tensors_read(made), tensors_written(made)
    zoned: dict[str, Zoned] = {}
    for each in made.parameters:
        array = arrays[each.name]
        zoned[each.name] = Zoned.of(device, array.shape, array.itemsize)
        if each in read:
            zoned[each.name].tensor.write(np.ascontiguousarray(array).view(np.uint8).reshape(-1))
    if isinstance(loaded, LoadedProgram):
        for each in loaded.prepare(sizes).workspaces:
            zoned[each.name] = Zoned.of(device, each.shape, _BYTES[each.dtype])
    try:
        loaded.bind({name: each.tensor for name, each in zoned.items()}, sizes)()
        loaded.synchronise()
        found = {each.name: zoned[each.name].contents(arrays[each.name]) for each in written}
        touched = [name for name, each in zoned.items() if not each.untouched]
    finally:
        for each in zoned.values():
            device.free(each.whole)
    reference = product_of(made) if isinstance(made, Program) else None
    comparison, uncompared = compare_run(made, arrays, found, 0, reference, (), sizes)
    return {
        "sizes": dict(sizes),
        "compared": None if comparison is None else asdict(comparison),
        "not compared": list(uncompared),
        "zones touched": touched,
        "right": comparison is not None and _is_right(comparison) and not uncompared and not touched,
    }


def _is_right(found: Comparison) -> bool:
    return found.right and found.elements > 0


# -- data contracts --------------------------------------------------------------------------------------------

_SEQUENCES = Path(__file__).resolve().parent.parent / "tests" / "corpus" / "proved" / "rows_of_sequences.py"
_ROWS, _COLUMNS = 40, 8
_OFFSETS = {(0, 7, 7, _ROWS): "", (0, 9, 8, _ROWS): "starts[1] = 9"}
"""Offsets of sequences, and the element at which they violate the kernel's contract."""


def guard_rows(device: Device, promises: Promises) -> Iterator[Row]:
    """A row for offsets that keep a kernel's contract, and for those that do not, checked by its guard on the GPU."""
    loaded = load(build_cached(next(iter(load_file(str(_SEQUENCES)))).trace()), device.driver)
    sizes = {"S": 4, "T": _ROWS, "N": _COLUMNS}
    shapes = {"X": (_ROWS, _COLUMNS), "starts": (4,), "Y": (_ROWS, _COLUMNS)}
    for offsets, wanted in _OFFSETS.items():
        memory = {name: device.allocate(shape, 4) for name, shape in shapes.items()}
        memory["X"].fill(0)
        memory["starts"].write(np.array(offsets, np.int32).view(np.uint8))
        told = ""
        try:
            loaded.bind(memory, sizes, 0, promises)()
            loaded.synchronise()
        except ArgusError as problem:
            told = f"{problem.diagnostic.code}: {problem.diagnostic.message}"
        right = (wanted in told and told.startswith("E402")) if wanted else not told
        yield {"case": f"{promises} {list(offsets)}", "told": told, "trouble": "", "right": right}
        if not (wanted and promises == "stop"):  # after a trap nothing can be freed
            for each in memory.values():
                device.free(each)
