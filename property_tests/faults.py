"""Makes kernels with faults that the language cannot express, by editing the statements of a traced kernel.

`@edited(lambda kernel: without(kernel, Fence, kind="barrier_init"))` above `@kernel(...)` removes the fence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from attrs import asdict, evolve, frozen

from argus.core.dsl.kernel import Template
from argus.core.ir import Kernel, Stmt, walk
from property_tests.programs import exchanged, with_stmts

Edit = Callable[[Kernel], Kernel]
T = TypeVar("T", bound=Stmt)


@frozen
class Edited(Template):
    """A template that edits each kernel that it traces."""

    edit: Edit

    def trace(self, config: str | None = None) -> Kernel:
        return self.edit(super().trace(config))


def edited(edit: Edit) -> Callable[[Template], Edited]:
    """Decorate a kernel so that its trace is edited."""

    def decorate(template: Template) -> Edited:
        return Edited(**asdict(template, recurse=False), edit=edit)

    return decorate


def stated(kernel: Kernel, of: type[T], /, **fields: object) -> list[T]:
    """The statements of a kind with these field values, in program order; an atom is given by its name."""

    def matches(stmt: Stmt) -> bool:
        return all(getattr(stmt, name) == value or str(getattr(stmt, name)) == value for name, value in fields.items())

    return [stmt for stmt in walk(kernel.body) if isinstance(stmt, of) and matches(stmt)]


def without(kernel: Kernel, of: type[Stmt], /, **fields: object) -> Kernel:
    """The kernel without the first statement of a kind with these field values."""
    return with_stmts(kernel, stated(kernel, of, **fields)[0], ())


def with_fields(kernel: Kernel, stmt: Stmt, **fields: object) -> Kernel:
    """The kernel with one statement changed."""
    return with_stmts(kernel, stmt, (evolve(stmt, **fields),))


def with_part(kernel: Kernel, old: object, new: object) -> Kernel:
    """The kernel with a part of its statements, such as a buffer, replaced everywhere."""
    return exchanged(kernel, {id(old): new}, "exchanged").kernel
