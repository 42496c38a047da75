"""Mutation operators on kernels, for measuring the verifier.

An operator is data: a name, a description, and a pure function from a kernel to kernels that differ from it at one
place. Most mutants are wrong, some are equivalent, some are ill-formed. The ranges of loop and agent symbols follow the
mutated bounds, since proofs rely on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argus.core.ir import Kernel
from argus.testing.mutation import (
    barriers,
    claims,
    control,
    elements,
    instructions,
    launches,
    statements,
    storage,
    views,
    waits,
)
from argus.testing.mutation.operator import Mutant, Operator
from argus.testing.mutation.programs import PROGRAM_OPERATORS, ProgramMutant
from argus.testing.mutation.programs import mutated as mutated_program

__all__ = [
    "OPERATORS",
    "PROGRAM_OPERATORS",
    "Mutant",
    "Operator",
    "ProgramMutant",
    "mutated",
    "mutated_program",
    "named",
]

_MODULES = (statements, waits, barriers, views, control, instructions, storage, elements, claims, launches)

OPERATORS: tuple[Operator, ...] = tuple(operator for module in _MODULES for operator in module.OPERATORS)
"""Every operator on kernels, by theme."""


def named(names: Sequence[str]) -> tuple[Operator, ...]:
    """The operators of these names. Raises KeyError for an unknown name."""
    known = {operator.name: operator for operator in OPERATORS}
    return tuple(known[name] for name in names)


def mutated(kernel: Kernel, operators: Sequence[Operator] = OPERATORS) -> Iterator[Mutant]:
    """The mutants of a kernel: each operator at every place where it applies."""
    for operator in operators:
        yield from operator(kernel)
