"""Source locations in the user's program."""

from __future__ import annotations

from attrs import frozen


@frozen
class Frame:
    """A range of one source line; lines count from 1, columns from 0, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_column: int
    function: str


@frozen
class Span:
    """The location of a statement and its call stack, innermost first."""

    frames: tuple[Frame, ...] = ()

    @property
    def frame(self) -> Frame | None:
        """The innermost frame; None without a source."""
        return self.frames[0] if self.frames else None

    @property
    def place(self) -> str:
        """The line, with the name of its file without folders; empty without a source."""
        return f"{self.frames[0].file.rpartition('/')[2]}:{self.frames[0].line}" if self.frames else ""

    def __str__(self) -> str:
        return f"{self.frames[0].file}:{self.frames[0].line}" if self.frames else "<no source>"


NOWHERE = Span()
