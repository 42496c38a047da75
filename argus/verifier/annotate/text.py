"""Lines put into the text of a Python file: where they go, and what they need to be imported; the rest stays."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal

from attrs import field, frozen

from argus import language
from argus.core.index import Sym
from argus.core.ir import Kernel

Where = Literal["start", "before", "end"]
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_CALLED = re.compile(r"(?<![.\w])([a-z_]\w*)(?=\()")


@frozen
class Wanted:
    """A line to put in. where: at the start or end of the function that `line` (from 1) begins, or before the
    statement that stands on it.
    """

    code: str
    where: Where
    line: int


@frozen
class Added:
    """A line that was put in. line: its number in the new text, from 1. code: without its indentation."""

    line: int
    code: str


@frozen
class Source:
    """A Python file. lines: each with its own ending."""

    data: bytes
    encoding: str
    lines: tuple[str, ...]
    tree: ast.Module = field(eq=False, repr=False)

    @property
    def newline(self) -> str:
        first = self.lines[0] if self.lines else ""
        return first[len(first.rstrip("\r\n")) :] or "\n"


def source_of(data: bytes) -> Source:
    """A file that parses: it was loaded."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding)
    return Source(data, encoding, tuple(_LINE.findall(text)), ast.parse(data))


def put(source: Source, wanted: Sequence[Wanted]) -> tuple[bytes, tuple[Added, ...]]:
    """The file with these lines, but those that stand there already; what was added, in the order of lines."""
    inserted: dict[int, list[str]] = {}
    callers: dict[str, None] = {}
    bound = _bound(source.tree)
    for each in dict.fromkeys(wanted):
        at = _place(source, each)
        if at is None:
            continue
        row, indent = at
        code = _CALLED.sub(lambda match: _alias(match[1], bound), each.code)
        if code in _neighbours(source, each, row) or indent + code in inserted.get(row, []):
            continue
        inserted.setdefault(row, []).append(indent + code)
        callers |= dict.fromkeys(_CALLED.findall(each.code))
    imported = _import(callers, bound)
    if imported and inserted:
        inserted.setdefault(_import_row(source), []).insert(0, imported)
    return _woven(source, inserted)


def _woven(source: Source, inserted: Mapping[int, Sequence[str]]) -> tuple[bytes, tuple[Added, ...]]:
    """inserted: before which line, counted from 0, which lines go."""
    made: list[str] = []
    added: list[Added] = []
    for row in range(len(source.lines) + 1):
        for line in inserted.get(row, ()):
            if made and not made[-1].endswith(("\r", "\n")):
                made[-1] += source.newline
            made.append(line + source.newline)
            added.append(Added(len(made), line.strip()))
        made += source.lines[row : row + 1]
    return "".join(made).encode(source.encoding), tuple(added)


# -- places ------------------------------------------------------------------------------------------------------


def _place(source: Source, wanted: Wanted) -> tuple[int, str] | None:
    """Before which line, counted from 0, and how far indented; None where no line of its own can stand."""
    if wanted.where == "before":
        return _before(source, wanted.line)
    function = _function(source.tree, wanted.line)
    if function is None:
        return None
    body = _statements(function)
    first, last = body[0], body[-1]
    if wanted.where == "start":
        return _before_statement(source, first)
    if isinstance(last, ast.Return):
        return _before_statement(source, last)
    indent = _indent(source, first)
    return None if indent is None else (last.end_lineno or last.lineno, indent)


def _function(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The function that begins on a line, with its decorators."""
    functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    return next(
        (each for each in functions if line in {each.lineno, *(mark.lineno for mark in each.decorator_list)}), None
    )


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring, unless that is all of it."""
    return function.body[1:] or function.body if ast.get_docstring(function, clean=False) is not None else function.body


def _before(source: Source, line: int) -> tuple[int, str] | None:
    """Before the innermost statement on a line that begins a line of its own, or the one that it stands behind."""
    order = sorted(
        (each for each in ast.walk(source.tree) if isinstance(each, ast.stmt)),
        key=lambda each: (each.lineno, each.col_offset),
    )
    over = [each for each in order if each.lineno <= line <= (each.end_lineno or each.lineno)]
    for each in reversed(over):
        found = _before_statement(source, each)
        if found is not None:
            return found
    return None


def _before_statement(source: Source, stmt: ast.stmt) -> tuple[int, str] | None:
    indent = _indent(source, stmt)
    elif_ = isinstance(stmt, ast.If) and source.lines[stmt.lineno - 1].lstrip().startswith("elif")
    return None if indent is None or elif_ else (stmt.lineno - 1, indent)


def _indent(source: Source, stmt: ast.stmt) -> str | None:
    """What stands before a statement on its line; None if that is more than blanks, or the line goes on from before."""
    line = source.lines[stmt.lineno - 1]
    before = line.encode("utf-8")[: stmt.col_offset].decode("utf-8")
    goes_on = stmt.lineno > 1 and source.lines[stmt.lineno - 2].rstrip("\r\n").endswith("\\")
    return None if before.strip() or goes_on else before


def _neighbours(source: Source, wanted: Wanted, row: int) -> Collection[str]:
    """Lines among which a claim may stand already: those of the function, or the claims just above."""
    if wanted.where == "before":
        above = (line.strip() for line in reversed(source.lines[:row]))
        return set(takewhile(lambda line: not line or _is_claim(line), above))
    function = _function(source.tree, wanted.line)
    assert function is not None
    return {line.strip() for line in source.lines[function.lineno - 1 : function.end_lineno]}


def _is_claim(line: str) -> bool:
    return line.startswith(("#", "assert_", "argus_assert_", "tag(", "argus_tag("))


# -- names -------------------------------------------------------------------------------------------------------


def _bound(tree: ast.Module) -> dict[str, str]:
    """Names of a file, each with that of the language that it stands for everywhere, empty if it does not."""
    bound: dict[str, str] = {}
    for name, meaning in _bindings(tree):
        bound[name] = meaning if bound.get(name, meaning) == meaning else ""
    return bound


def _bindings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="argus.language", names=names) if node in tree.body:
                for each in names:
                    yield from ((n, n) for n in language.__all__ if each.name == "*")
                    yield each.asname or each.name, each.name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (((each.asname or each.name).partition(".")[0], "") for each in names)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name, ""
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, ""
            case _:
                pass


def _alias(name: str, bound: Mapping[str, str]) -> str:
    """What a name of the language is called in a file: another name where the file means something else by it."""
    if name not in language.__all__ or bound.get(name, name) == name:
        return name
    return f"argus_{name}"


def _import(called: Collection[str], bound: Mapping[str, str]) -> str:
    """The line that imports what a file does not have, empty if it has all."""
    needed = sorted(name for name in called if name in language.__all__ and bound.get(_alias(name, bound)) != name)
    told = (name if _alias(name, bound) == name else f"{name} as {_alias(name, bound)}" for name in needed)
    return f"from argus.language import {', '.join(told)}" if needed else ""


def _import_row(source: Source) -> int:
    """Below the last import of the language, else above the first statement that may have one above it."""
    body = source.tree.body
    ends = [
        each.end_lineno or each.lineno
        for each in body
        if isinstance(each, ast.ImportFrom) and each.module == "argus.language"
    ]
    if ends:
        return ends[-1]
    late = ast.get_docstring(source.tree, clean=False) is not None
    for each in body[int(late) :]:
        if not (isinstance(each, ast.ImportFrom) and each.module == "__future__"):
            marks = each.decorator_list if isinstance(each, ast.FunctionDef | ast.ClassDef) else []
            return min([each.lineno, *(mark.lineno for mark in marks)]) - 1
    return len(source.lines)


def with_sizes(code: str, kernel: Kernel, source: Source, line: int) -> str:
    """The code with sizes that the function around a line gives no name written as extents of a parameter."""
    around = [
        each
        for each in ast.walk(source.tree)
        if isinstance(each, ast.FunctionDef) and each.lineno <= line <= (each.end_lineno or each.lineno)
    ]
    if not around:
        return code
    known = {name for each in (*around, source.tree) for name in _own_names(each)}
    for size in kernel.sizes:
        if size.name in known:
            continue
        place = next(
            (
                f"{buffer.name}.shape[{axis}]"
                for buffer in kernel.parameters
                for axis, extent in enumerate(buffer.shape)
                if isinstance(extent, Sym) and extent.symbol == size and buffer.name in known
            ),
            None,
        )
        if place is not None:
            code = re.sub(rf"(?<![.\w]){re.escape(size.name)}(?![\w=(])", place, code)
    return code


def _own_names(scope: ast.AST) -> Iterator[str]:
    """Names that a function or module binds, and not the functions in it."""
    nodes = list(ast.iter_child_nodes(scope))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Lambda | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.arg):
            yield node.arg
        nodes += ast.iter_child_nodes(node)
