"""Many kernels compared with the interpreter at once: their texts are compiled as one unit for each target."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

from attrs import field, frozen

from argus.core.diagnostic import ArgusError
from argus.emit.cpu.compiler import Executable, compile_units
from argus.emit.cpu.unit import Unit
from argus.runtime.cpu.launch import Limits
from argus.runtime.cpu.validate import SECONDS, Emitted, Trial, Validation, run_trial, unit


@frozen
class Runs:
    """A text, and the sizes and the seed of each run of it."""

    made: Emitted
    cases: tuple[tuple[Mapping[str, int], int], ...] = field(converter=tuple[tuple[Mapping[str, int], int], ...])


def validate_together(runs: Sequence[Runs], seconds: float = SECONDS) -> list[Validation | ArgusError]:
    """The validation of each text, in order, up to its first run that fails; or the error that it raised.

    seconds: the time limit of one run. Raises ArgusError (E303) without a compiler.
    """
    units = [unit(each.made) for each in runs]
    found: dict[int, Validation | ArgusError] = {}
    with tempfile.TemporaryDirectory(prefix="argus-cpu-many-") as name:
        for target in sorted({own.target for own in units}):
            chosen = [number for number, own in enumerate(units) if own.target == target]
            start = perf_counter()
            built = compile_units([units[number] for number in chosen], Path(name), target)
            each = (perf_counter() - start) / len(chosen)
            for number, executable in zip(chosen, built, strict=True):
                found[number] = (
                    executable
                    if isinstance(executable, ArgusError)
                    else _validated(runs[number], units[number], executable, seconds, each)
                )
    return [found[number] for number in range(len(runs))]


def _validated(runs: Runs, own: Unit, executable: Executable, seconds: float, built: float) -> Validation | ArgusError:
    trials: list[Trial] = []
    start = perf_counter()
    for sizes, seed in runs.cases:
        try:
            trials.append(run_trial(runs.made, own, executable, sizes, seed, Limits(seconds)))
        except ArgusError as error:
            return error
        if not trials[-1].right:
            break
    return Validation(own.symbol, own.target, tuple(trials), (built, perf_counter() - start))
