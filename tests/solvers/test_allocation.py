"""A new z3 context reuses the pages of a freed one."""

from __future__ import annotations

import resource

from argus.core import algebra
from argus.core.index import Symbol
from argus.core.query import Budget, Query, Unsat
from argus.solvers.allocation import keep_freed_memory
from argus.solvers.z3_backend import Z3


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_a_check_asks_the_system_for_few_pages() -> None:
    assert keep_freed_memory()
    number = algebra.sym(Symbol("n", "size", 1, None))
    query = Query((algebra.lt(algebra.mul(number, number), 0),))
    assert isinstance(Z3().check(query, Budget()), Unsat)
    before = faults()
    for _ in range(20):
        Z3().check(query, Budget())
    assert (faults() - before) / 20 < 1000
