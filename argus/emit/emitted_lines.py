"""Which statement of the kernel each line of its emitted text belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable

from argus.core.ir import Kernel, Stmt, walk

_MARK = re.compile(r"( *)// #(\d+)$")


def statements_of_lines(kernel: Kernel, emit: Callable[[Callable[[Stmt], str]], str]) -> tuple[Stmt | None, ...]:
    """The innermost statement that emitted each line of a text; None for lines of no statement.

    emit: makes the text with comments of its argument's; it is emitted once more, with numbers of statements for
    comments. A line belongs to the last comment ahead of it that is indented as far as the line, or less.
    """
    statements = tuple(walk(kernel.body))
    number = {id(stmt): place for place, stmt in enumerate(statements)}
    open_marks, found = list[tuple[int, Stmt]](), list[Stmt | None]()
    for line in emit(lambda stmt: f"#{number[id(stmt)]}").splitlines():
        indent = len(line) - len(line.lstrip(" "))
        mark = _MARK.match(line)
        while open_marks and open_marks[-1][0] >= indent + (mark is None):
            open_marks.pop()
        if mark is not None:
            open_marks.append((indent, statements[int(mark[2])]))
        found.append(open_marks[-1][1] if open_marks else None)
    return tuple(found)
