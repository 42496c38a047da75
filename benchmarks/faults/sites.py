"""Where a fault may be seeded: one replaced expression of a file, of a kind that reviewers know from real patches."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from attrs import frozen

KINDS = ("comparison", "sign", "operands", "dropped check", "limit", "connective", "negation", "extremum")
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NO_PROBE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


@frozen
class Site:
    """One fault: in `file` the expression at (line, column) to (end_line, end_column) becomes `after`.

    Lines count from 1, columns are UTF-8 bytes from 0, as in `ast`. inside: within a function, where a probe can see
    whether a test reaches it.
    """

    file: str
    kind: str
    line: int
    column: int
    end_line: int
    end_column: int
    before: str
    after: str
    inside: bool

    def applied(self, source: str) -> str:
        """The file's text with the fault in it."""
        lines = source.encode().splitlines(keepends=True)
        start = sum(map(len, lines[: self.line - 1])) + self.column
        end = sum(map(len, lines[: self.end_line - 1])) + self.end_column
        text = source.encode()
        return (text[:start] + f"({self.after})".encode() + text[end:]).decode()


def sites(root: Path, file: Path) -> Iterator[Site]:
    """Every fault that may be seeded into one file."""
    source = file.read_text(encoding="utf-8")
    name = file.relative_to(root).as_posix()
    for node, inside in _expressions(ast.parse(source), inside=False):
        if any(isinstance(part, _NO_PROBE) for part in ast.walk(node)):
            continue
        for kind, changed in _changes(node):
            yield Site(
                name,
                kind,
                node.lineno,
                node.col_offset,
                node.end_lineno or node.lineno,
                node.end_col_offset or 0,
                ast.unparse(node),
                ast.unparse(changed),
                inside,
            )


def _expressions(tree: ast.AST, *, inside: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Expressions that run: no annotation, no decorator, no default, nothing within a format string."""
    if isinstance(tree, ast.JoinedStr | ast.arguments):
        return
    if isinstance(tree, ast.If) and _refuses(tree):
        yield _Check(tree.test), inside
    if isinstance(tree, ast.expr):
        yield tree, inside
    within = inside or isinstance(tree, ast.FunctionDef)
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _expressions(child, inside=within)


class _Check(ast.UnaryOp):
    """The condition of an `if` that refuses something: what is dropped is the whole check."""

    def __init__(self, test: ast.expr) -> None:
        super().__init__(ast.Not(), test)
        ast.copy_location(self, test)


def _refuses(statement: ast.If) -> bool:
    return not statement.orelse and isinstance(statement.body[-1], ast.Raise | ast.Return | ast.Continue)


def _changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case _Check():
            yield "dropped check", ast.Constant(value=False)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield "comparison", ast.Compare(left, [_COMPARISONS[type(op)]()], [right])
            if isinstance(right, ast.Constant) and type(right.value) is int:
                yield "limit", ast.Compare(left, [op], [ast.Constant(right.value + 1)])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS and not _is_text(left, right):
            yield "sign", ast.BinOp(left, _SIGNS[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            yield "connective", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negation", operand
        case ast.Call(func=ast.Name(id=name) as func, args=arguments, keywords=keywords) if name in _NAMES:
            yield "extremum", ast.Call(ast.copy_location(ast.Name(_NAMES[name]), func), arguments, keywords)
        case ast.Call(func=func, args=[one, two, *rest], keywords=keywords) if not _starred(one, two):
            yield "operands", ast.Call(func, [two, one, *rest], keywords)
        case _:
            pass


def _is_text(*operands: ast.expr) -> bool:
    """Whether an operator joins or formats text, where a sign means nothing."""
    return any(
        isinstance(each, ast.JoinedStr | ast.Tuple | ast.List)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in operands
    )


def _starred(*arguments: ast.expr) -> bool:
    return any(isinstance(each, ast.Starred) for each in arguments)


def draw(root: Path, count: int, seed: int) -> list[Site]:
    """So many faults, no two in one expression: two of every package first, then by the number of places."""
    generator = random.Random(seed)  # noqa: S311 reason: a sample
    packages: dict[str, list[Site]] = defaultdict(list)
    for file in sorted((root / "argus").rglob("*.py")):
        packages[file.parent.relative_to(root).as_posix()] += sites(root, file)
    drawn: dict[tuple[str, int, int], Site] = {}
    for package in sorted(packages):
        for site in _balanced(generator, packages[package], 2):
            drawn[site.file, site.line, site.column] = site
    pool = [site for package in sorted(packages) for site in packages[package]]
    while len(drawn) < count:
        kind = generator.choice(KINDS)
        site = generator.choice([each for each in pool if each.kind == kind])
        drawn.setdefault((site.file, site.line, site.column), site)
    return sorted(drawn.values(), key=lambda site: (site.file, site.line, site.column))


def _balanced(generator: random.Random, pool: list[Site], count: int) -> list[Site]:
    """So many of a package, each of a kind drawn first, so that rare kinds are not drowned by common ones."""
    found: list[Site] = []
    for _ in range(count):
        kinds = sorted({site.kind for site in pool})
        if kinds:
            kind = generator.choice(kinds)
            found.append(generator.choice([site for site in pool if site.kind == kind]))
    return found
