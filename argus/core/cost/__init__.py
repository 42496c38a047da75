"""A static performance model: predicts a kernel's time from its IR, instruction tables and the compiler's report."""

from __future__ import annotations

from argus.core.cost.counts import Counts, counts
from argus.core.cost.machine import MACHINES, Fitted, Machine
from argus.core.cost.occupancy import Compiled, Occupancy, Rounds, occupancy, rounds
from argus.core.cost.predict import Exposed, Prediction, predict

__all__ = [
    "MACHINES",
    "Compiled",
    "Counts",
    "Exposed",
    "Fitted",
    "Machine",
    "Occupancy",
    "Prediction",
    "Rounds",
    "counts",
    "occupancy",
    "predict",
    "rounds",
]
