"""Addresses that each copy in a loop or behind it computes anew, for kernels without registers to keep them.

LLVM moves what is the same in every iteration out of a loop: parts of the address and of the predicate of each vector,
which then take registers throughout the loop. So do parts of the addresses behind a loop that it has computed ahead. A
thread index that the compiler cannot see through, read by each copy anew, keeps them in the copy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve

from argus.emit.scope import Scope

OPAQUE = """\
HELPER int opaque(int x) {  // x; what is computed from it stays where it is
    asm volatile("" : "+v"(x));
    return x;
}
"""
_AGAIN = "again"


def recomputing(scope: Scope) -> Scope:
    """The scope of a copy that `with_own_thread` encloses."""
    names = evolve(scope.names, symbols={**scope.names.symbols, scope.thread: _AGAIN})
    return evolve(scope, text=evolve(scope.text, names=names))


def with_own_thread(lines: Sequence[str], scope: Scope) -> list[str]:
    """The lines of a copy, emitted in the scope `recomputing`, with its thread index."""
    if not any(re.search(rf"\b{_AGAIN}\b", line) for line in lines):
        return list(lines)
    declared = f"    const int {_AGAIN} = opaque({scope.names.symbols[scope.thread]});"
    return ["{", declared, *(f"    {line}" for line in lines), "}"]
