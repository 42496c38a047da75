"""Mutation operators on programs: drop, repeat or exchange launches, or exchange their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from argus.core.ir import Launch, Program


@frozen(eq=False)
class ProgramMutant:
    """A program after one change. what: describes the change."""

    operator: str
    program: Program
    what: str


def _drop(program: Program) -> Iterator[tuple[Program, str]]:
    """Drop a launch, unless it is the only one that uses some tensor."""
    for at, launch in enumerate(program.launches):
        rest = (*program.launches[:at], *program.launches[at + 1 :])
        used = {buffer for other in rest for buffer in other.arguments.values()}
        if not used >= {*program.parameters, *program.workspaces}:
            continue
        yield evolve(program, launches=rest), f"launch {at}, `{launch.kernel.name}`, left out"


def _twice(program: Program) -> Iterator[tuple[Program, str]]:
    for at, launch in enumerate(program.launches):
        launches = (*program.launches[: at + 1], evolve(launch), *program.launches[at + 1 :])
        yield evolve(program, launches=launches), f"launch {at}, `{launch.kernel.name}`, made twice"


def _exchange(program: Program) -> Iterator[tuple[Program, str]]:
    for at in range(len(program.launches) - 1):
        before, one, two, after = (
            program.launches[:at],
            program.launches[at],
            program.launches[at + 1],
            program.launches[at + 2 :],
        )
        yield evolve(program, launches=(*before, two, one, *after)), f"launches {at} and {at + 1} exchanged"


def _arguments(program: Program) -> Iterator[tuple[Program, str]]:
    """Exchange two tensors of one launch that have equal shape and type."""
    for at, launch in enumerate(program.launches):
        held = list(launch.arguments.items())
        for place, (one, first) in enumerate(held):
            for two, second in held[place + 1 :]:
                if first is not second and first.dtype == second.dtype and first.shape == second.shape:
                    made: Launch = evolve(launch, arguments={**launch.arguments, one: second, two: first})
                    launches = (*program.launches[:at], made, *program.launches[at + 1 :])
                    yield evolve(program, launches=launches), f"`{one}` and `{two}` of launch {at} exchanged"


PROGRAM_OPERATORS: tuple[tuple[str, Callable[[Program], Iterator[tuple[Program, str]]]], ...] = (
    ("drop_launch", _drop),
    ("repeat_launch", _twice),
    ("exchange_launches", _exchange),
    ("exchange_tensors", _arguments),
)


def mutated(program: Program) -> Iterator[ProgramMutant]:
    """The mutants of a program: every operator at every place."""
    for name, make in PROGRAM_OPERATORS:
        for made, what in make(program):
            yield ProgramMutant(name, made, what)
