"""Which tests see a fault: an import hook that asks, where a fault would stand, whether it would change anything.

A test can only fail by a fault if it runs the place with operands that tell the fault from the original. The hook
replaces each such expression by a call that computes both from the same operands and notes the running test (pytest
names it in the environment, also for processes that tests start) where they differ. What may have effects is not
computed twice: there reaching it is enough.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, cast

SITES = "ARGUS_FAULT_SITES"
SEEN = "ARGUS_FAULT_SEEN"
PROBE = "__argus_probe__"
_BOTH = ("comparison", "sign", "limit")
_TESTED = ("dropped check",)

_noted: dict[str, set[int]] = defaultdict(set)


def _test() -> str:
    """The running test's id, which pytest keeps in the environment."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]


def note(number: int) -> None:
    """The running test sees a fault. Written at once: a process may be killed."""
    if not _already(number):
        _noted[_test()].add(number)
        with Path(os.environ[SEEN], f"{os.getpid()}.txt").open("a") as file:
            file.write(f"{number}\t{_test()}\n")


def _already(number: int) -> bool:
    return number in _noted[_test()]


def differs(number: int, one: Callable[..., Any], other: Callable[..., Any], *operands: Any) -> Any:  # noqa: ANN401 reason: any expression
    """The original's value; the test is noted if the fault's is another one or an exception."""
    value = one(*operands)
    if not _already(number):
        try:
            changed = other(*operands)
            same = bool(type(changed) is type(value) and changed == value)
        except Exception:  # noqa: BLE001 reason: whatever the fault raises is a difference
            same = False
        if not same:
            note(number)
    return value


def refuses(number: int, value: Any) -> Any:  # noqa: ANN401 reason: any condition
    """The condition of a check; the test is noted if it holds."""
    if value:
        note(number)
    return value


def reached(number: int, value: Callable[[], Any]) -> Any:  # noqa: ANN401 reason: any expression
    """The expression's value; the test is noted."""
    note(number)
    return value()


class _Probes(ast.NodeTransformer):
    def __init__(self, rows: Sequence[tuple[int, dict[str, Any]]]) -> None:
        self.rows = {(row["line"], row["column"], row["end_line"], row["end_column"]): (n, row) for n, row in rows}

    def visit(self, node: ast.AST) -> Any:  # noqa: ANN401 reason: as the base class
        place = _place(node)
        node = self.generic_visit(node)
        found = self.rows.get(place) if isinstance(node, ast.expr) and place else None
        if found is None:
            return node
        number, row = found
        return ast.fix_missing_locations(ast.copy_location(_probe(number, row, cast("ast.expr", node)), node))


def _place(node: ast.AST) -> tuple[int, int, int, int] | None:
    if not isinstance(node, ast.expr):
        return None
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _probe(number: int, row: dict[str, Any], node: ast.expr) -> ast.expr:
    if row["kind"] in _TESTED:
        return _call("refuses", number, node)
    after = ast.parse(row["after"], mode="eval").body
    match node, after:
        case (
            ast.Compare(left=left, ops=[op], comparators=[right]),
            ast.Compare(ops=[changed], comparators=[limit]),
        ) if row["kind"] in _BOTH:
            other = limit if row["kind"] == "limit" else ast.Name("b", ast.Load())
            return _call("differs", number, _compare(op), _compare(changed, other), left, right)
        case ast.BinOp(left=left, op=op, right=right), ast.BinOp(op=changed) if row["kind"] in _BOTH:
            return _call("differs", number, _binary(op), _binary(changed), left, right)
        case _:
            return _call("reached", number, _lambda([], node))


def _call(name: str, number: int, *arguments: ast.expr) -> ast.expr:
    function = ast.Attribute(ast.Name(PROBE, ast.Load()), name, ast.Load())
    return ast.Call(function, [ast.Constant(number), *arguments], [])


def _lambda(names: Sequence[str], body: ast.expr) -> ast.expr:
    parameters = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    return ast.Lambda(parameters, body)


def _compare(op: ast.cmpop, right: ast.expr | None = None) -> ast.expr:
    return _lambda("ab", ast.Compare(ast.Name("a", ast.Load()), [op], [right or ast.Name("b", ast.Load())]))


def _binary(op: ast.operator) -> ast.expr:
    return _lambda("ab", ast.BinOp(ast.Name("a", ast.Load()), op, ast.Name("b", ast.Load())))


class _Loader(SourceFileLoader):
    rows: Sequence[tuple[int, dict[str, Any]]] = ()

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 reason: as the base class
        """The module with its probes: never what is compiled already."""
        text = Path(self.path).read_text(encoding="utf-8")
        tree = _Probes(self.rows).visit(ast.parse(text))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, root: Path, rows: Sequence[dict[str, Any]]) -> None:
        self.files: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for number, row in enumerate(rows):
            self.files[str(root / row["file"])].append((number, row))

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        del target
        if fullname.partition(".")[0] != "argus":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin not in self.files:
            return None
        loader = _Loader(fullname, spec.origin)
        loader.rows = self.files[spec.origin]
        spec.loader = loader
        return spec


def install() -> None:
    """Put probes into what is imported from now on, if the environment names sites."""
    named = os.environ.get(SITES)
    if named:
        import builtins  # noqa: PLC0415 reason: the one place where probes can be called from any module

        setattr(builtins, PROBE, sys.modules[__name__])
        found = json.loads(Path(named).read_text())
        sys.meta_path.insert(0, _Finder(Path(found["root"]), found["sites"]))
