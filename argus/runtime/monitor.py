"""The state of the card while it is timed: what its driver's tool reads, in the background."""

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
    """Clock, power and temperature while a block of code runs; nothing where the driver's tool is not installed.

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
        """Least, median and greatest of each reading, by name; empty without readings."""
        columns = zip(_ASKED, zip(*self.readings, strict=True), strict=False)
        return {name: [min(column), statistics.median(column), max(column)] for name, column in columns}


def _numbers(line: str) -> tuple[float, ...]:
    """The readings of one line; none if one is missing, as of a card that does not tell its power."""
    try:
        found = tuple(float(part) for part in line.split(","))
    except ValueError:
        return ()
    return found if len(found) == len(_ASKED) else ()
