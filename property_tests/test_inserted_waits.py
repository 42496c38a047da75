"""Property: a right program whose waits the language inserts is right however late its operations complete."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import pytest

from argus.core.ir import Kernel, Wait, walk
from argus.interp.compiled_kernel import Prepared
from argus.interp.run import run_prepared
from argus.interp.search.schedule import directed
from argus.interp.search.search import sizes_in_order
from argus.testing.mutants import spread_sizes
from property_tests.depth import examples
from property_tests.small.right import FAMILIES, Right
from property_tests.waits import waiting_automatically, without_waits

COUNT = examples(10, 200)
WAITING = ("elements", "staging", "folding", "multiplying", "counting", "warping")
"""The families of which some programs have waits and no roles."""


def violated(kernel: Kernel) -> set[str]:
    """The invariants that runs under all directed schedules violate at two sizes."""
    prepared = Prepared(kernel)
    return {
        found.code
        for sizes in spread_sizes(list(sizes_in_order(kernel)), 2)
        for schedule in directed(kernel)
        for found in run_prepared(prepared, sizes, None, schedule, tags=True, values=False).violations
    }


def drawn(family: str) -> Iterator[tuple[Right, Kernel]]:
    """Programs of a family into which waits are inserted."""
    drawing = random.Random(f"waits of {family}")  # noqa: S311 reason: a seed makes failures repeatable
    while True:
        program = FAMILIES[family](drawing.choice)
        kernel = program.kernel()
        if isinstance(kernel, Kernel) and kernel.roles is None:
            made = waiting_automatically(kernel)
            if any(isinstance(stmt, Wait) for stmt in walk(made.body)):
                yield program, kernel


@pytest.mark.share(6)
@pytest.mark.parametrize("family", WAITING)
def test_inserted_waits_suffice_in_every_run(family: str) -> None:
    """The runs violate what they violate with the waits of the author: nothing, but claims that some families lack."""
    needed = 0
    for program, kernel in islice(drawn(family), COUNT):
        right = violated(kernel)
        assert right <= {"I4"}
        assert violated(waiting_automatically(kernel)) == right, program
        needed += violated(without_waits(kernel)) != right
    assert needed > 0
