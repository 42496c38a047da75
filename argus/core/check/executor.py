"""Where in a kernel a statement stands: by whom it is run."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from argus.core.diagnostic import Diagnostic, Label
from argus.core.ir import Kernel, One, Role, Roles, Stmt, bodies


@frozen
class Executor:
    """Run by the block, by each agent of a role, or by the one thread that it elects."""

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
        return "" if self.role is None else self.role.name

    def __str__(self) -> str:
        return "the kernel" if self.role is None else f"role `{self.role.name}`"


def statements_with_executor(kernel: Kernel) -> Iterator[tuple[Executor, Stmt]]:
    """Every statement with its executor, in program order, each before what it contains."""
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
    return Diagnostic(code, "error", message, Label(stmt.span, here), help=help, kernel=kernel.name)
