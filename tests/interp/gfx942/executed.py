"""Executes single instructions on a wave whose registers a test chooses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from argus.interp.gfx942.findings import Findings
from argus.interp.gfx942.instruction import ACC
from argus.interp.gfx942.memory import memory_of
from argus.interp.gfx942.races import Races
from argus.interp.gfx942.state import LANES, Group, Wave, new_wave
from argus.interp.gfx942.step import Step, step_at
from tests.interp.gfx942.assembled import kernels

LDS = 4096
Registers = Mapping[int, npt.NDArray[Any]]


def group_of_one(lds: int = LDS) -> Group:
    """One workgroup of one wave. All vector registers count as written."""
    wave = new_wave(0, 1, ACC + 256, 0)
    wave.whole = [True] * len(wave.whole)
    wave.known = [True] * len(wave.known)
    data, written = np.zeros((1, lds), np.uint8), np.ones((1, lds), np.uint8)
    memory = memory_of({"all": (np.zeros(4096, np.uint8), True)})
    return Group(np.zeros((1, 3), np.int64), [wave], data, written, memory, Findings(), Races(1, 1, lds), lds)


class Instructions:
    """Lines of assembly, each of which can be executed."""

    def __init__(self, lines: list[str]) -> None:
        self.code = kernels({"all": "\n".join(lines)})
        at = self.code.address
        self.steps: dict[str, Step] = {}
        for line in lines:
            self.steps[line] = step_at(self.code, at)
            at = self.steps[line].after

    def run(
        self,
        line: str,
        vectors: Registers,
        scalars: Mapping[int, int] | None = None,
        *,
        active: int = (1 << LANES) - 1,
        group: Group | None = None,
    ) -> Wave:
        """The wave after a line. vectors: 64 values of 32 bits each. active: EXEC."""
        held = group_of_one() if group is None else group
        (wave,) = held.waves
        for number, values in vectors.items():
            wave.v[number, 0] = np.ascontiguousarray(values).view(np.uint32)
        for number, value in {**(scalars or {}), 126: active & 0xFFFFFFFF, 127: active >> 32}.items():
            wave.write_scalar(number, np.uint32(value))
        with np.errstate(all="ignore"):
            self.steps[line].run(held, wave)
        return wave
