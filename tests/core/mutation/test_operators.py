"""What single operators make: kernels that differ at one place, and symbols whose ranges are true."""

from __future__ import annotations

import pytest

from argus.core.algebra import add, const, sym
from argus.core.index import Symbol
from argus.core.ir import Await, For, If, Kernel, Roles, Wait, walk
from argus.core.ir.pretty import pretty
from argus.core.ir.surgery import with_inferred_range
from argus.testing.mutation import OPERATORS, Mutant, mutated, named
from property_tests.programs import KERNELS

ROLES = KERNELS["two_consumers"]
STAGED = KERNELS["no_prefetch"]


def made(kernel: Kernel, operator: str) -> list[Mutant]:
    return list(mutated(kernel, named([operator])))


def test_every_operator_says_what_it_does() -> None:
    assert all(operator.does and operator.name.isidentifier() for operator in OPERATORS)


def test_a_mutant_differs_in_its_text_and_names_its_place() -> None:
    plain = pretty(STAGED)
    for mutant in made(STAGED, "drop_wait"):
        assert pretty(mutant.kernel) != plain
        assert str(mutant.place).endswith(str(mutant).rsplit(":", 1)[1])


def test_the_original_is_left_as_it_was() -> None:
    before = pretty(ROLES)
    assert len(list(mutated(ROLES))) > 300
    assert pretty(ROLES) == before


def test_as_many_mutants_as_places() -> None:
    waits = [stmt for stmt in walk(STAGED.body) if isinstance(stmt, Wait)]
    assert len(made(STAGED, "drop_wait")) == len(waits)
    awaits = [stmt for stmt in walk(ROLES.body) if isinstance(stmt, Await)]
    assert len(made(ROLES, "phase_ahead")) == len(awaits)


@pytest.mark.parametrize("operator", ["start_earlier", "start_later", "stop_later", "stop_earlier", "descend"])
def test_ranges_of_loop_variables_follow_their_bounds(operator: str) -> None:
    for kernel in (STAGED, ROLES):
        for mutant in made(kernel, operator):
            for loop in walk(mutant.kernel.body):
                if isinstance(loop, For):
                    assert with_inferred_range(loop).symbol == loop.symbol


def test_ranges_of_blocks_follow_the_grid() -> None:
    for mutant in made(STAGED, "more_blocks"):
        for symbol, extent in zip(mutant.kernel.blocks, mutant.kernel.grid, strict=True):
            assert extent.range[1] is None or symbol.high == extent.range[1] - 1


def test_ranges_of_agents_follow_their_number() -> None:
    for mutant in made(ROLES, "other_agents"):
        roles = mutant.kernel.roles
        assert isinstance(roles, Roles)
        assert all(role.number.high == role.agents - 1 for role in roles.roles)


def test_a_loop_inside_follows_the_variable_of_the_one_outside() -> None:
    outer, inner = Symbol("i", "loop", 0, 1), Symbol("j", "loop", 0, 2)
    body = (For(inner, const(0), add(sym(outer), 2), 1, ()),)
    wider = with_inferred_range(For(outer, const(0), const(5), 1, body))
    (found,) = wider.body
    assert isinstance(found, For)
    assert (wider.symbol.high, found.symbol.high) == (4, 5)


def test_guards_are_negated_and_dropped() -> None:
    kernel = KERNELS["double_buffer"]
    guards = [stmt for stmt in walk(kernel.body) if isinstance(stmt, If)]
    assert len(made(kernel, "negate_guard")) == len(guards)
    for mutant in made(kernel, "drop_guard"):
        assert sum(isinstance(stmt, If) for stmt in walk(mutant.kernel.body)) == len(guards) - 1
