"""Inserts lines, and the imports they need, into the text of a Python file; every other byte is unchanged."""

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
class Insertion:
    """A line to insert. where: at the start or end of the function that begins at `line` (from 1), or before the
    statement on that line.
    """

    code: str
    where: Where
    line: int


@frozen
class Added:
    """An inserted line. line: its number in the new text, from 1. code: its text without indentation."""

    line: int
    code: str


@frozen
class Source:
    """A Python file. lines: each with its line ending."""

    data: bytes
    encoding: str
    lines: tuple[str, ...]
    tree: ast.Module = field(eq=False, repr=False)

    @property
    def newline(self) -> str:
        first = self.lines[0] if self.lines else ""
        return first[len(first.rstrip("\r\n")) :] or "\n"


def source_of(data: bytes) -> Source:
    """Decodes and parses a file; the caller has loaded it, so it parses."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding)
    return Source(data, encoding, tuple(_LINE.findall(text)), ast.parse(data))


def insert_lines(source: Source, wanted: Sequence[Insertion]) -> tuple[bytes, tuple[Added, ...]]:
    """The file with these lines inserted, except those it already has; and the added lines in order."""
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
    return _merge(source, inserted)


def _merge(source: Source, inserted: Mapping[int, Sequence[str]]) -> tuple[bytes, tuple[Added, ...]]:
    """inserted: the new lines by the row, counted from 0, that they precede."""
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


def _place(source: Source, wanted: Insertion) -> tuple[int, str] | None:
    """The row, counted from 0, to insert before, and the indentation; None where no line can be inserted."""
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
    """The function that begins on a line: its `def` or one of its decorators."""
    functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    return next(
        (each for each in functions if line in {each.lineno, *(mark.lineno for mark in each.decorator_list)}), None
    )


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring, unless the docstring is the whole body."""
    return function.body[1:] or function.body if ast.get_docstring(function, clean=False) is not None else function.body


def _before(source: Source, line: int) -> tuple[int, str] | None:
    """The place before the innermost statement that covers the line and is the first on its own line."""
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
    """A statement's indentation; None if other code precedes it on its line, or the line continues the previous one."""
    line = source.lines[stmt.lineno - 1]
    before = line.encode("utf-8")[: stmt.col_offset].decode("utf-8")
    goes_on = stmt.lineno > 1 and source.lines[stmt.lineno - 2].rstrip("\r\n").endswith("\\")
    return None if before.strip() or goes_on else before


def _neighbours(source: Source, wanted: Insertion, row: int) -> Collection[str]:
    """Lines to search for an existing copy of the claim: the whole function, or the claims just above."""
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
    """The names a file binds, each with the `argus.language` name it always denotes, or "" if it has other meanings."""
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
    """The name under which the file can use a name of `argus.language`: an alias where the file rebinds it."""
    if name not in language.__all__ or bound.get(name, name) == name:
        return name
    return f"argus_{name}"


def _import(called: Collection[str], bound: Mapping[str, str]) -> str:
    """The import line for the names that the file lacks, empty if it has them all."""
    needed = sorted(name for name in called if name in language.__all__ and bound.get(_alias(name, bound)) != name)
    names = (name if _alias(name, bound) == name else f"{name} as {_alias(name, bound)}" for name in needed)
    return f"from argus.language import {', '.join(names)}" if needed else ""


def _import_row(source: Source) -> int:
    """The row after the last import from `argus.language`, else the first row where an import may go."""
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
    """The code with each size that has no name around the line replaced by a parameter's extent, `A.shape[0]`."""
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
    """Names that a function or module binds itself, not those bound inside nested functions."""
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
