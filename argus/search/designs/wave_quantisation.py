"""Features of wave quantisation and occupancy, computed from a design's fields alone, without tracing or compiling."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log, log2
from typing import assert_never

from attrs import frozen

from argus.core.cost.machine import MACHINES, Machine
from argus.kernels.gemm import Config
from argus.kernels.schedules.cdna3 import Cdna3, Cdna3PingPong
from argus.kernels.schedules.cdna3_interleaved import Cdna3Interleaved
from argus.kernels.schedules.cdna3_staged import Cdna3Staged
from argus.kernels.schedules.hopper import Hopper
from argus.kernels.schedules.narrow import Narrow
from argus.kernels.schedules.skinny import Skinny
from argus.kernels.schedules.split import Split
from argus.kernels.schedules.staged import Staged
from argus.search.problems.problem import Gemm

_ELEMENT = 2
"""Bytes of an operand's element."""
_BESIDE = 48
"""Estimated registers per thread besides accumulators: fragments and addresses."""
_USUAL = 32_768
"""Bytes in flight at which the feature is 0: about what hides the memory latency."""

_TILE = 128


@frozen
class BlockShape:
    """Resources of a block. rows, columns: of its tile of C. sharing: blocks per tile (split-K).

    deep: bk. slots: pipeline stages. beside: other bytes of shared memory. persistent: one persistent block per SM.
    ways: bank conflict degree of operand reads.
    """

    rows: int
    columns: int
    bk: int
    stages: int
    threads: int
    blocks_per_tile: int = 1
    other_bytes: int = 0
    persistent: bool = False
    conflict_degree: int = 1

    @property
    def slot(self) -> int:
        """Bytes of one stage."""
        return (self.rows + self.columns) * self.bk * _ELEMENT

    def resident(self, machine: Machine) -> int:
        """Estimated resident blocks per SM or CU."""
        if self.persistent:
            return 1
        shared = self.stages * self.slot + self.other_bytes + machine.reserved
        registers = self.rows * self.columns // self.threads + _BESIDE
        waves = ceil(self.threads / machine.target.unit)
        room = (machine.shared // shared, machine.registers // (registers * self.threads), machine.waves // waves)
        return max(1, min(*room, machine.blocks))


def block_shape(config: Config) -> BlockShape:
    """The resources of a configuration's block."""
    match config:
        case Cdna3():
            return BlockShape(config.bm, config.bn, config.bk, 2, config.threads)
        case Cdna3Interleaved() | Cdna3PingPong():
            return BlockShape(config.bm, config.bn, config.bk, 1, config.threads)
        case Cdna3Staged():
            # A row's length divides or is a multiple of the line of all banks. Without a swizzle, lanes that read
            # neighbouring rows therefore conflict as often as reads fit into a row.
            conflict_degree = 1 if config.swizzle else config.bk // config.run
            return BlockShape(
                config.bm, config.bn, config.bk, config.buffers, config.threads, conflict_degree=conflict_degree
            )
        case Hopper():
            return BlockShape(
                config.bm, config.bn, config.bk, config.stages, config.threads, persistent=config.persistent
            )
        case Narrow():
            return BlockShape(64, config.bn, config.bk, 1, config.threads)
        case Skinny() | Staged():
            return BlockShape(config.bm, config.bn, config.bk, config.stages, config.threads)
        case Split():
            rows, columns = (config.bn, config.bm) if config.swap_ab else (config.bm, config.bn)
            sums = 4 * rows * columns
            return BlockShape(rows, columns, config.bk, config.stages, config.threads, config.splits, sums)
        case _:
            assert_never(config)


def fits(config: Config, machine: Machine) -> bool:
    """Whether the tiles of all stages, which every kernel of the configuration has, fit in shared memory."""
    block = block_shape(config)
    return block.stages * block.slot <= machine.shared


def occupancy_features(problem: Gemm, config: Config) -> Mapping[str, float]:
    """Features by name. Utilisations are logarithms, at most 0; counts are logarithms, scaled to at most about 1.

    The number of resident blocks determines latency hiding and the number of rounds of the grid; with few tiles either
    may account for a third of the time.
    """
    found, machine = block_shape(config), MACHINES[problem.target]
    processors = machine.target.processors
    tiles = ceil(problem.m / found.rows) * ceil(problem.n / found.columns)
    blocks = tiles * found.blocks_per_tile
    resident = found.resident(machine)
    waves, rounds = ceil(blocks / processors), ceil(blocks / (processors * resident))
    together = min(resident, waves)
    return {
        "last wave": log(blocks / (waves * processors)),
        "one wave": float(waves == 1),
        "last round": log(blocks / (rounds * processors * resident)) if rounds > 1 else 0.0,
        "one round": float(rounds == 1),
        "resident": log2(resident) / 4,
        "edge": log(problem.m * problem.n / (tiles * found.rows * found.columns)),
        "products a byte": log2(found.rows * found.columns / (found.rows + found.columns)) / 8,
        **_with_square("together", log2(together) / 4),
        **_with_square("bytes in flight", log2(together * found.stages * found.slot / _USUAL) / 4),
        **_with_square("bank conflicts", log2(found.conflict_degree) / 4),
    }


def problem_size(problem: Gemm) -> float:
    """Base-2 logarithm of the number of 128 x 128 tiles per SM or CU: the covariate of `argus.policy.experience`."""
    return log2(problem.m * problem.n / _TILE**2 / MACHINES[problem.target].target.processors)


def _with_square(name: str, value: float) -> dict[str, float]:
    """A value and its square, so that a linear model can have an interior optimum."""
    return {name: value, f"{name} squared": value**2}
