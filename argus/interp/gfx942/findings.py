"""What an execution reports, besides its outputs."""

from __future__ import annotations

from typing import Literal

from attrs import define, field, frozen

Kind = Literal[
    "uninitialised register",
    "uninitialised LDS",
    "used before its wait",
    "missing wait states",
    "LDS race",
    "out of bounds",
    "out of LDS",
    "misaligned",
    "trap",
    "no end",
]

_MOST = 64


@frozen
class Where:
    """A workgroup (x, y, z), a wave of it, and a lane if the finding is of one."""

    workgroup: tuple[int, int, int]
    wave: int
    lane: int | None = None

    def __str__(self) -> str:
        lane = "" if self.lane is None else f", lane {self.lane}"
        return f"workgroup {self.workgroup}, wave {self.wave}{lane}"


@frozen
class Finding:
    """A rule of the machine that an instruction breaks. other: the second instruction of a race or a hazard, or 0.

    address: of the instruction, in the code object. lane: the first of the lanes concerned.
    """

    kind: Kind
    address: int
    instruction: str
    what: str
    where: Where
    other: int = 0


@define
class Findings:
    """The first finding of each kind at each instruction, in the order in which they were found."""

    found: dict[tuple[Kind, int], Finding] = field(factory=dict[tuple[Kind, int], Finding])

    def add(self, finding: Finding) -> None:
        if len(self.found) < _MOST:
            self.found.setdefault((finding.kind, finding.address), finding)

    def has(self, kind: Kind, address: int) -> bool:
        return (kind, address) in self.found
