"""The executor of each statement of a kernel: the block, an agent of a role, or its elected thread."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Kernel, One, Role, Roles, Stmt, bodies


@frozen
class Executor:
    """What runs a statement: the block (role None), each agent of a role, or the elected thread of either."""

    kernel: Kernel
    role: Role | None = None
    elected: bool = False

    @property
    def agent(self) -> int:
        """Threads of the agent, elected or not."""
        return self.kernel.threads if self.role is None else self.role.agent

    @property
    def threads(self) -> int:
        """Threads that run the statement together."""
        return 1 if self.elected else self.agent

    @property
    def owner(self) -> str:
        """The name that buffers of this executor carry as their owner: the role's, or "" for the block."""
        return "" if self.role is None else self.role.name

    def __str__(self) -> str:
        return "the kernel" if self.role is None else f"role `{self.role.name}`"


def statements_with_executor(kernel: Kernel) -> Iterator[tuple[Executor, Stmt]]:
    """Every statement with its executor, in program order, each before the statements nested in it."""
    yield from _with_executor(Executor(kernel), kernel.body)


def _with_executor(executor: Executor, body: tuple[Stmt, ...]) -> Iterator[tuple[Executor, Stmt]]:
    for stmt in body:
        yield executor, stmt
        for position, part in enumerate(bodies(stmt)):
            match stmt:
                case Roles(roles=roles):
                    yield from _with_executor(evolve(executor, role=roles[position]), part)
                case One():
                    yield from _with_executor(evolve(executor, elected=True), part)
                case _:
                    yield from _with_executor(executor, part)


def error_at(kernel: Kernel, stmt: Stmt, code: str, message: str, help: str = "", here: str = "") -> Diagnostic:
    """An error about a statement. here: the label at its source line."""
    return Diagnostic(code, "error", message, Label(stmt.span, here), help=help, kernel=kernel.name)
