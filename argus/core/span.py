"""Where in the user's program something was written."""

from __future__ import annotations

from attrs import frozen


@frozen
class Frame:
    """One source line of one function; lines count from 1, columns from 0, the end is exclusive."""

    file: str
    line: int
    column: int
    end_column: int
    function: str


@frozen
class Span:
    """The place of a statement and the calls that led there, innermost first."""

    frames: tuple[Frame, ...] = ()

    @property
    def frame(self) -> Frame | None:
        return self.frames[0] if self.frames else None

    def __str__(self) -> str:
        return f"{self.frames[0].file}:{self.frames[0].line}" if self.frames else "<no source>"


NOWHERE = Span()
