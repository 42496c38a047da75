"""Kernels with a fault that the language lets nobody write: a traced kernel, and one edit of its statements.

`@edited(lambda kernel: without(kernel, Fence, kind="barrier_init"))` above `@kernel(...)` takes the fence out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from attrs import evolve, frozen

from argus.core.dsl.kernel import Template
from argus.core.ir import Kernel, Stmt, walk
from property_tests.programs import exchanged, with_stmts

Edit = Callable[[Kernel], Kernel]
T = TypeVar("T", bound=Stmt)


@frozen
class Edited(Template):
    """A template whose kernels come out edited."""

    edit: Edit

    def trace(self, config: str | None = None) -> Kernel:
        return self.edit(super().trace(config))


def edited(edit: Edit) -> Callable[[Template], Edited]:
    """Edit what a kernel is traced to."""

    def decorate(template: Template) -> Edited:
        return Edited(
            template.function, template.target, template.threads, template.cluster, template.configs, edit=edit
        )

    return decorate


def stated(kernel: Kernel, of: type[T], /, **fields: object) -> list[T]:
    """The statements of a kind with these fields, in program order; of an atom, its name."""

    def alike(stmt: Stmt) -> bool:
        return all(getattr(stmt, name) == value or str(getattr(stmt, name)) == value for name, value in fields.items())

    return [stmt for stmt in walk(kernel.body) if isinstance(stmt, of) and alike(stmt)]


def without(kernel: Kernel, of: type[Stmt], /, **fields: object) -> Kernel:
    """The kernel without the first statement of a kind with these fields."""
    return with_stmts(kernel, stated(kernel, of, **fields)[0], ())


def with_fields(kernel: Kernel, stmt: Stmt, **fields: object) -> Kernel:
    """The kernel with one statement changed."""
    return with_stmts(kernel, stmt, (evolve(stmt, **fields),))


def with_part(kernel: Kernel, old: object, new: object) -> Kernel:
    """The kernel with a part of its statements, such as a buffer, exchanged wherever it is named."""
    return exchanged(kernel, {id(old): new}, "exchanged").kernel
