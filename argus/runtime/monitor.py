"""Samples the GPU's clock, power and temperature in the background during measurements, by nvidia-smi."""

from __future__ import annotations

import statistics
import subprocess
from types import TracebackType
from typing import Self

from attrs import define, field

_ASKED = ("clocks.sm", "power.draw", "temperature.gpu")
_WATCHED = ("nvidia-smi", f"--query-gpu={','.join(_ASKED)}", "--format=csv,noheader,nounits", "-lms", "20")


@define
class Monitor:
    """Clock, power and temperature while a `with` block runs; no readings where nvidia-smi is not installed.

    readings: (MHz, W, degrees Celsius), one every 20 ms.
    """

    readings: list[tuple[float, ...]] = field(factory=list[tuple[float, ...]])
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(  # noqa: S603 reason: a fixed command
                _WATCHED, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            self._process = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        self._process.terminate()
        output, _ = self._process.communicate()
        self.readings = [found for line in output.splitlines() if (found := _numbers(line))]

    def summary(self) -> dict[str, list[float]]:
        """Minimum, median and maximum of each quantity, by name; empty without readings."""
        columns = zip(_ASKED, zip(*self.readings, strict=True), strict=False)
        return {name: [min(column), statistics.median(column), max(column)] for name, column in columns}


def _numbers(line: str) -> tuple[float, ...]:
    """The readings of one line; empty if one is missing, as on a GPU that does not report its power."""
    try:
        found = tuple(float(part) for part in line.split(","))
    except ValueError:
        return ()
    return found if len(found) == len(_ASKED) else ()
