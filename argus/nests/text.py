"""Nests as text, for reports and as keys: `Y0[i0] = max(X0[i0], 0)`; shared values have names."""

from __future__ import annotations

from collections import Counter
from typing import assert_never

from argus.core.index_text import show
from argus.nests.canonical import Canonical
from argus.nests.nest import (
    Apply,
    Both,
    Compare,
    Constant,
    Convert,
    Coordinate,
    Either,
    Expr,
    Inside,
    Negated,
    Nest,
    Read,
    Reduce,
    Select,
    Test,
)
from argus.nests.rewrite import expressions, operands


def canonical_text(form: Canonical) -> str:
    """The whole form: parameters with their types, ties of sizes, and the nests."""
    lines = [f"{each.type.name}: {each.type.dtype}[{', '.join(each.type.extents)}]" for each in form.parameters]
    lines += [f"{show(one)} == {show(other)}" for one, other in form.ties]
    return "\n".join([*lines, *map(nest_text, form.nests)])


def nest_text(nest: Nest) -> str:
    """The nest: a line for each value that is used more than once, in order, then the output's."""
    text = _Text(nest.body)
    axes = ", ".join(f"{axis.name} < {show(axis.extent)}" for axis in nest.domain)
    body = text.of(nest.body)
    at = ", ".join(axis.name for axis in nest.domain)
    return "\n".join([f"for {axes}:", *text.lines, f"  {nest.output}[{at}]: {nest.dtype} = {body}"])


class _Text:
    def __init__(self, root: Expr) -> None:
        used = Counter(id(each) for parent in expressions(root) for each in operands(parent))
        self._shared = {each for each, times in used.items() if times > 1}
        self._known: dict[int, str] = {}
        self.lines: list[str] = []

    def of(self, expr: Expr) -> str:
        found = self._known.get(id(expr))
        if found is None:
            found = self._made(expr)
            if id(expr) in self._shared and not isinstance(expr, Read | Constant | Coordinate):
                self.lines.append(f"  v{len(self.lines)} = {found}")
                found = f"v{len(self.lines) - 1}"
            self._known[id(expr)] = found
        return found

    def _made(self, expr: Expr) -> str:
        match expr:
            case Read(tensor=tensor, index=index, outside=outside):
                beyond = "" if outside is None else f" else {outside:g}"
                return f"{tensor}[{', '.join(map(show, index))}{beyond}]"
            case Constant(value=value):
                return repr(value)
            case Coordinate(index=index):
                return f"number({show(index)})"
            case Apply(op=op, args=args):
                return f"{op}({', '.join(map(self.of, args))})"
            case Select(test=test, then=then, other=other):
                return f"({self.of(then)} if {self.test(test)} else {self.of(other)})"
            case Convert(dtype=dtype, arg=arg):
                return f"{dtype}({self.of(arg)})"
            case Reduce(op=op, axes=axes, body=body):
                over = ", ".join(f"{axis.name} < {show(axis.extent)}" for axis in axes)
                return f"{op}({self.of(body)} for {over})"
            case _:
                assert_never(expr)

    def test(self, test: Test) -> str:
        match test:
            case Compare(op=op, left=left, right=right):
                return f"{self.of(left)} {op} {self.of(right)}"
            case Inside(condition=condition):
                return show(condition)
            case Both(tests=tests):
                return f"({' and '.join(map(self.test, tests))})"
            case Either(tests=tests):
                return f"({' or '.join(map(self.test, tests))})"
            case Negated(test=negated):
                return f"not {self.test(negated)}"
            case _:
                assert_never(test)
