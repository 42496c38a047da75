"""Wait states that software must leave between two instructions, which the machine does not enforce.

[MI300 ISA 4.5, "Manually inserted wait states"; LLVM GCNHazardRecognizer for gfx940.] An instruction in between counts
for one wait state, `s_nop n` for n + 1. A rule gives the states that a consumer needs after a producer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from argus.interp.gfx942.instruction import EXEC, M0, VCC, Constant, Scalar, vectors
from argus.interp.gfx942.recent import LONGEST
from argus.interp.gfx942.step import Step, Unit

_SHAPE = re.compile(r"v_mfma_\w32_(\d+)x\d+x(\d+)_(\w+)$")
_ALU = frozenset({"vector", "transcendental"})
_MEMORY = frozenset({"vector memory", "lds"})
_AFTER_READ = {2: 1, 4: 3, 8: 7, 16: 15}


Needs = dict[tuple[int, int], tuple[tuple[int, str], ...]]
"""The wait states between two instructions of a code object, by their addresses."""


def too_early(before: Sequence[Step], step: Step, known: Needs) -> Iterator[tuple[Step, int, int, str]]:
    """Producers that are too near: the states needed, the states left, and the rule. before: the oldest first.

    known: what has been worked out before; it grows.
    """
    left = 0
    for producer in reversed(before):
        if left < _LONGEST_OF_OTHERS or producer.unit == "matrix":
            pair = (producer.instruction.address, step.instruction.address)
            if pair not in known:
                known[pair] = tuple(needed(producer, step))
            for need, why in known[pair]:
                if left < need:
                    yield producer, need, left, why
        left += producer.states
        if left >= LONGEST:
            return


def needed(producer: Step, step: Step) -> Iterator[tuple[int, str]]:
    """The wait states that each rule asks for between two instructions."""
    for rule in _RULES.get(producer.unit, ()):
        if (found := rule(producer, step)) is not None:
            yield found


_Need = tuple[int, str] | None


@cache
def passes(name: str) -> int:
    """Passes of four cycles that a matrix instruction takes, 0 for another instruction."""
    found = _SHAPE.match(name)
    if found is None:
        return 0
    rows, depth, form = int(found.group(1)), int(found.group(2)), found.group(3)
    if form == "f32":
        return 16 if rows == 32 else 8
    per_pass = 1024 if form in {"f16", "bf16"} else 2048
    return rows * rows * depth // per_pass


@cache
def multiply_adds(name: str) -> int:
    """Products that a matrix instruction adds up, 0 for another instruction."""
    found = _SHAPE.match(name)
    return int(found.group(1)) ** 2 * int(found.group(2)) if found else 0


def _settles(producer: Step) -> int:
    """States until the result of a matrix instruction may be used by another unit."""
    count = passes(producer.instruction.row.name)
    return count + 3 if _xdl(producer) else count + 2


def _xdl(step: Step) -> bool:
    """Whether it is a matrix instruction of the kind that reads 16-bit or 8-bit elements."""
    return step.unit == "matrix" and not step.instruction.row.name.endswith("_f32")


def _alu_to_matrix(producer: Step, step: Step) -> _Need:
    if step.unit == "matrix" and _overlap(producer.writes, step.reads):
        return 2, "a vector instruction writes a register that a matrix instruction reads"
    return None


def _matrix_to_operand(producer: Step, step: Step) -> _Need:
    """From the sum of a matrix instruction to another's A or B."""
    if step.unit != "matrix":
        return None
    if _overlap(producer.writes, vectors(step.instruction.sources[:2])):
        return _settles(producer), "a matrix instruction reads, as A or B, what another writes"
    return None


def _matrix_to_sum(producer: Step, step: Step) -> _Need:
    """From the sum of a matrix instruction to another's C: at once if they are the same registers."""
    if step.unit != "matrix":
        return None
    added = vectors(step.instruction.sources[2:3])
    if not _overlap(producer.writes, added):
        return None
    count = passes(producer.instruction.row.name)
    if producer.writes == added:
        return (2, "a matrix instruction of two passes writes C") if count == 2 else None
    if _xdl(step) and not _xdl(producer):
        return None
    return (count + 1 if _xdl(producer) else count), "a matrix instruction writes a part of another's C"


def _matrix_to_others(producer: Step, step: Step) -> _Need:
    if step.unit not in _ALU | _MEMORY:
        return None
    if _overlap(producer.writes, step.reads):
        return _settles(producer), "it reads what a matrix instruction writes"
    if _overlap(producer.writes, step.writes):
        return _settles(producer), "it overwrites what a matrix instruction writes"
    if _xdl(producer) and _overlap(vectors(producer.instruction.sources[2:3]), step.writes):
        count = passes(producer.instruction.row.name)
        return _AFTER_READ[count], "it overwrites what a matrix instruction adds"
    return None


def _transcendental(producer: Step, step: Step) -> _Need:
    if step.unit not in {"vector", "matrix"}:
        return None
    if _overlap(producer.writes, step.reads):
        return 1, "it reads what a transcendental instruction writes"
    return None


def _scalar_from_vector(producer: Step, step: Step) -> _Need:
    """Scalar registers that a vector instruction writes: comparisons, carries, lanes."""
    if not _overlap(producer.scalars_written, step.scalars_read):
        return None
    if step.unit == "vector memory":
        return 5, "a vector memory instruction reads a scalar register that a vector instruction writes"
    if step.unit not in _ALU:
        return None
    name = step.instruction.row.name
    if name == "v_div_fmas_f32" and _overlap(producer.scalars_written, (VCC, VCC + 1)):
        return 4, "`v_div_fmas` reads VCC that a vector instruction writes"
    if name in {"v_readlane_b32", "v_writelane_b32"} and isinstance(step.instruction.sources[1], Scalar):
        return 4, "it selects a lane by a scalar register that a vector instruction writes"
    return 2, "a vector instruction reads a scalar register that another writes"


def _lane_read(producer: Step, step: Step) -> _Need:
    if step.instruction.row.name not in {"v_readlane_b32", "v_readfirstlane_b32"}:
        return None
    if _overlap(producer.writes, step.reads):
        return 1, "it reads a lane of a register that a vector instruction writes"
    return None


def _moved_lanes(producer: Step, step: Step) -> _Need:
    if step.instruction.dpp is None:
        return None
    if _overlap(producer.writes, vectors(step.instruction.sources[:1])):
        return 2, "it reads other lanes (DPP) of a register that a vector instruction writes"
    if _overlap(producer.scalars_written, (EXEC, EXEC + 1)):
        return 5, "it reads other lanes (DPP) after a vector instruction that writes EXEC"
    return None


def _mask_to_matrix(producer: Step, step: Step) -> _Need:
    if step.unit == "matrix" and _overlap(producer.scalars_written, (EXEC, EXEC + 1)):
        return 4, "a matrix instruction after a vector instruction that writes EXEC"
    return None


def _base_of_lds(producer: Step, step: Step) -> _Need:
    if M0 in producer.scalars_written and step.unit == "vector memory" and M0 in step.scalars_read:
        return 1, "a load to LDS reads M0 that a scalar instruction writes"
    return None


def _data_of_store(producer: Step, step: Step) -> _Need:
    """A store of more than 64 bits reads its data late, unless a register holds its scalar offset."""
    if "_store_" not in producer.instruction.row.name or step.unit not in _ALU:
        return None
    buffer = producer.instruction.row.form == "MUBUF"
    first = producer.instruction.row.form == "SCRATCH" and "vaddr" not in producer.instruction.flags
    data = producer.instruction.sources[-1 if buffer else 0 if first else 1]
    fixed = not buffer or any(isinstance(each, Constant) for each in producer.instruction.sources)
    held = vectors((data,))
    if fixed and len(held) > 2 and _overlap(held, step.writes):
        return 2, "it overwrites the data of a store of more than 64 bits"
    return None


def _overlap(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return not set(left).isdisjoint(right)


_OF_ALU = (_alu_to_matrix, _scalar_from_vector, _lane_read, _moved_lanes, _mask_to_matrix)
_RULES: Mapping[Unit, tuple[Callable[[Step, Step], _Need], ...]] = {
    "vector": _OF_ALU,
    "transcendental": (*_OF_ALU, _transcendental),
    "matrix": (_matrix_to_operand, _matrix_to_sum, _matrix_to_others),
    "scalar": (_base_of_lds,),
    "vector memory": (_data_of_store,),
}
"""By the unit of the producer."""
_LONGEST_OF_OTHERS = 5
"""The most wait states that a producer other than a matrix instruction asks for."""
