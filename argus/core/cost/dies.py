"""Machines of several dies, for the model of machine code: what `Machine` does not say of MI300X, MI325X and MI355X.

Rows are never mixed: each machine has its own clock, memory and power limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from argus.core.cost.machine import MI300X, Machine
from argus.core.phases import PHASES, Phases

_CDNA4_READ_B128: Phases = tuple(
    tuple(half + lane for lane in lanes)
    for half in (0, 32)
    for lanes in (
        (*range(4), *range(12, 16), *range(20, 28)),
        (*range(4, 12), *range(16, 20), *range(28, 32)),
    )
)
"""Groups of lanes over 64 banks [Triton, AMD backend]."""


@frozen
class DieMachine:
    """One machine. name: of the product.

    pass_cycles: cycles of one pass of a gfx942 matrix instruction, or of the same product on a machine whose matrix
    units are faster. issue: cycles between two instructions of a wave. branch: cycles of a taken branch. wide,
    wide_banks: phases and banks of LDS reads of 128 bits; other accesses are those of gfx942. die_cache: bytes per
    cycle from the L2 cache of one die. far: bytes per cycle from the last-level (Infinity) cache to all dies.
    near_latency: cycles of an L2 hit.

    power: the limit of the data sheet, in watts. power_share: the share of the matrix units' peak at which this limit
    begins to lower the clock; 1 if it never does. That of the MI300X is fitted to one published figure, `fitted_to`; a
    machine of the same dies, clock and units has that share times the ratio of the limits. The clock then falls so that
    power, which grows with the share and with the square of the clock (voltage follows the clock in part: an estimate),
    stays at the limit.
    """

    name: str
    machine: Machine
    pass_cycles: float
    issue: float
    branch: float
    wide: Phases
    wide_banks: int
    die_cache: float
    far: float
    near_latency: float
    power: float
    power_share: float
    fitted_to: str

    def clock_share(self, busy: float) -> float:
        """The clock relative to the highest one, where this share of all matrix units is busy."""
        return 1.0 if busy <= self.power_share else (self.power_share / busy) ** 0.5

    @property
    def processors(self) -> int:
        return sum(self.machine.parts)


MI300X_DIES = DieMachine(
    name="MI300X",
    machine=MI300X,
    pass_cycles=4.0,  # MI300 ISA: a pass is four cycles
    issue=4.0,  # MI300 ISA: each SIMD issues every fourth cycle
    branch=16.0,  # estimate: four issue slots, until the next instruction is fetched
    wide=PHASES["gfx942", "read", 128],
    wide_banks=32,
    die_cache=2048.0,  # AMD CDNA 3 white paper: 128 bytes of each of 16 channels
    far=11.9e6 / 2100.0,  # measured, of 17.2e6 at most [Chips and Cheese, "Testing AMD's Giant MI300X"]
    near_latency=300.0,  # estimate
    power=750.0,  # AMD MI300X data sheet
    power_share=0.405,
    fitted_to="torch, 8192 cubed bf16, 635 TFLOP/s",
)
_MI325X_POWER = 1000.0
MI325X_DIES = evolve(
    MI300X_DIES,
    name="MI325X",
    machine=evolve(MI300X, memory=6.0e6 / 2100.0),  # AMD MI325X data sheet: 6 TB/s, the same clock
    power=_MI325X_POWER,  # AMD MI325X data sheet
    power_share=MI300X_DIES.power_share * _MI325X_POWER / MI300X_DIES.power,
    fitted_to="",
)
MI355X_DIES = evolve(
    MI325X_DIES,
    name="MI355X",
    machine=evolve(
        MI300X,
        parts=(32,) * 8,  # AMD CDNA 4 white paper: 256 compute units
        clock=2400.0,
        memory=8.0e6 / 2400.0,
        shared=163_840,
    ),
    pass_cycles=2.0,  # AMD CDNA 4 white paper: twice the matrix rate of CDNA 3 for 16 bits
    wide=_CDNA4_READ_B128,
    wide_banks=64,
    far=11.9e6 / 2400.0,  # estimate: that of CDNA 3
    power=1400.0,  # AMD MI355X data sheet
    power_share=1.0,  # not known: its units take less energy a product
)
DIE_MACHINES: Mapping[str, DieMachine] = {each.name: each for each in (MI300X_DIES, MI325X_DIES, MI355X_DIES)}
